. "$EXAMPLES/schemas.inc"
