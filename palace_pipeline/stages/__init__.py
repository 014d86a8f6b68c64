"""The work of each asset: conversation by conversation, in bounded batches, without Dagster."""
