// The only module that imports the template library. Templates escape every value, so
// a string never becomes markup.
export { html, svg, nothing, render } from '../vendor/lit-html/lit-html.js'
export { repeat } from '../vendor/lit-html/directives/repeat.js'
export { live } from '../vendor/lit-html/directives/live.js'
export { keyed } from '../vendor/lit-html/directives/keyed.js'
