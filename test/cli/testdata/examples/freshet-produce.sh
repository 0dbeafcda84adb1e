. "$EXAMPLES/orders.inc"
. "$EXAMPLES/schemas.inc"
