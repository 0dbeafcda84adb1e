. "$EXAMPLES/schemas.inc"
freshet schema register orders-value order.avsc
