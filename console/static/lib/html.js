// The one place that knows the template library. Templates escape whatever is put
// into them; there is no way to markup from a string.
export { html, svg, nothing, render } from '../vendor/lit-html/lit-html.js'
export { repeat } from '../vendor/lit-html/directives/repeat.js'
export { live } from '../vendor/lit-html/directives/live.js'
export { keyed } from '../vendor/lit-html/directives/keyed.js'
