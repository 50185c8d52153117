"""The spool: the only code that creates, renames, links or removes anything in a root."""
