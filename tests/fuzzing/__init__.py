"""Files made wrong on purpose, thousands of them, each by its number alone, and what must hold of every one (`make fuzz`)."""
