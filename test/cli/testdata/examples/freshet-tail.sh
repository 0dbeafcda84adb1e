. "$EXAMPLES/orders.inc"
