"""Reading whole texts that nobody constrained, in time that is linear in their length."""
