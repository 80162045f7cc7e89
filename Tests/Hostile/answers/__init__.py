"""The hostile answers, by subject. A new answer is a row: raw, reply, frames … of answer.py say what it may be."""
