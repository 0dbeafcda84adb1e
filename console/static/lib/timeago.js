// Times that stay up to date.
import { html } from './html.js'
import { absolute, relative } from './format.js'
import { on, preferences } from './store.js'

/** <time-ago .time=${…}>: a relative time, or UTC if the user prefers it; the tooltip has both time zones. */
class TimeAgo extends HTMLElement {
  static all = new Set()

  connectedCallback() {
    TimeAgo.all.add(this)
    this.show()
  }

  disconnectedCallback() {
    TimeAgo.all.delete(this)
  }

  set time(t) {
    this.at = t
    this.show()
  }

  get text() {
    if (!this.at) return '–'
    return preferences.get('utc', false) ? absolute(this.at, true) : relative(this.at)
  }

  show() {
    const { text } = this
    if (this.textContent !== text) this.textContent = text
    const title = this.at ? `${absolute(this.at)} (${absolute(this.at, true)})` : ''
    if (this.title !== title) this.title = title
  }
}
customElements.define('time-ago', TimeAgo)

const tick = () => TimeAgo.all.forEach(e => e.show())
setInterval(tick, 1000)
on('times', tick)

export const ago = time => html`<time-ago .time=${time}></time-ago>`
