"""The Markdown workspace of a palace home: pages that people read and agents write, and nothing that needs a service.

The protocol (who writes, where, in what form, when, and what happens in a conflict) is in docs/workspace.md.
"""
