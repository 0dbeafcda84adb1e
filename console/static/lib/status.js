// The status of an object of the resource API: its state, its timeline, its protection.
import { html, nothing } from './html.js'
import { countOf } from './format.js'
import { ago } from './timeago.js'
import { badge } from './widgets.js'

/** Writes a reason of the API as words: NotInvited becomes Not invited. */
const inWords = (reason = '') => reason.replace(/([a-z])([A-Z])(?=[a-z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`)

const finalizers = o => (o.metadata.finalizers ?? []).join(', ')
const inProgress = /Provisioning|Updating|Pending|Deploy|^(Not)?Invited$/

/** The state of an object as [kind, text, tooltip]: its Ready or Issued condition, or its deletion. */
export function stateOf(o) {
  if (o.metadata.deletionTimestamp) return ['warn', 'Deleting', `waiting for finalizers: ${finalizers(o)}`]
  const find = type => o.status?.conditions?.find(condition => condition.type === type)
  const c = find('Ready') ?? find('Issued')
  if (!c) return ['', 'No status', '']
  if (c.status === 'True') return ['ok', c.type, c.message ?? '']
  return [inProgress.test(c.reason) ? 'warn' : 'bad', inWords(c.reason) || 'Not ready', c.message ?? '']
}

export const stateBadge = o => badge(...stateOf(o))

/** The colour of a condition. Expired and Revoked are bad if they are true, the others if they are false. */
function conditionKind({ type, status }) {
  const negative = /^(Expired|Revoked)$/.test(type)
  if (status === 'True') return negative ? 'bad' : 'ok'
  if (negative) return 'ok'
  return status === 'False' ? 'bad' : 'warn'
}

function stepsOf(o) {
  const steps = [{ at: o.metadata.creationTimestamp, kind: '', title: 'Created', text: '' }]
  for (const c of o.status?.conditions ?? []) {
    const text = [c.reason, c.message].filter(Boolean).join(': ')
    steps.push({ at: c.lastTransitionTime, kind: conditionKind(c), title: c.type, status: c.status, text })
  }
  if (o.metadata.deletionTimestamp) {
    const text = `Waiting for finalizers: ${finalizers(o)}`
    steps.push({ at: o.metadata.deletionTimestamp, kind: 'warn', title: 'Deletion requested', text })
  }
  return steps.sort((a, b) => Date.parse(a.at ?? 0) - Date.parse(b.at ?? 0))
}

const stepView = s => html`
  <li class=${s.kind}>
    <div class="when">${ago(s.at)}</div>
    <div>
      <b>${s.title}</b>${s.status ? html` <span class="muted">${s.status}</span>` : nothing}
      ${s.text ? html`<p>${s.text}</p>` : nothing}
    </div>
  </li>`

const eventView = e => html`
  <li>
    <span class="muted small">${ago(e.deprecatedLastTimestamp ?? e.metadata.creationTimestamp)}</span>
    <span><b>${e.reason}</b>${e.deprecatedCount > 1 ? ` × ${e.deprecatedCount}` : ''} ${e.note}</span>
  </li>`

/** Conditions in the order of their times, the newest last, and the object's events behind a disclosure. */
export const timeline = (o, events = []) => html`
  <ol class="timeline">${stepsOf(o).map(stepView)}</ol>
  ${events.length ? html`
    <details class="more">
      <summary class="muted small">${countOf(events.length, 'event')}</summary>
      <ul class="steps-taken">${events.map(eventView)}</ul>
    </details>` : nothing}`

/** The annotation that protects an object from deletion. */
export const protectedBy = 'cloud.vendor.io/destroy-protected'
export const isProtected = o => (o.metadata.annotations?.[protectedBy] ?? 'false') !== 'false'
export const protectionBadge = o =>
  isProtected(o) ? badge('info', 'Protected', `The annotation ${protectedBy} prevents its deletion`) : nothing
