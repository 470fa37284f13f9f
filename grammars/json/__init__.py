"""From shapes to grammar rules for JSON text, and the shortest text of a shape. Knows no wire format."""
