"""Palace: AI-chat exports in, an archive of your own out."""

__version__ = "0.1.0"
