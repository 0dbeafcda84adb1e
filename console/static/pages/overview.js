// Health, counts, live rates, and the first steps.
import { html } from '../lib/html.js'
import { heading } from '../lib/widgets.js'

export default ({ org }) => () => html`${heading({ title: 'Overview', sub: org })}`
