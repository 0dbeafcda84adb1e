. "$EXAMPLES/orders.inc"
freshet subscription delete orders audit
