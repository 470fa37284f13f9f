"""What a running process stands on: worker threads, garbage collection, shutdown, plain text helpers."""
