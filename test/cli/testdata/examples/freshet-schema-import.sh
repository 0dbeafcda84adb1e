. "$EXAMPLES/schemas.inc"
freshet schema export registry.jsonl
