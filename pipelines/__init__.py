"""What happens each night, in order: ingest, detect, link, report; the command line and the Dagster definitions over it."""
