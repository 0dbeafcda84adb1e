// Role bindings: the subjects they name, and the scope in which they grant a role.
import { html, nothing } from './html.js'
import { get, resource } from './api.js'
import { field, input, select, textArea } from './fields.js'
import { link } from './router.js'
import { stateBadge } from './status.js'

/** The bindings that name a subject. */
export const bindingsOf = (bindings, kind, name) =>
  bindings.filter(b => b.spec.subjects?.some(s => s.kind === kind && s.name === name))

/** The bindings of one subject as a list, each with its role. */
export const bindingList = (org, bindings) => html`
  <div class="rows-list">${bindings.map(b => html`
    <div>
      <a href=${link(org, 'roles', [b.metadata.name])}>${b.spec.roleRef.name}</a>
      <span class="muted small">by ${b.metadata.name}</span>
      <span class="spacer"></span>
      ${stateBadge(b)}
    </div>`)}</div>`

/** The scope of a binding in words. */
export function scopeOf(b) {
  if (b.spec.cel) return `where ${b.spec.cel}`
  if (b.spec.resourceNames?.length) return `${b.spec.resourceNames.length} named resources`
  const { common, messaging, schema, cloud } = b.spec.resourceNameRestriction ?? {}
  const parts = [common, messaging, schema, cloud]
    .flatMap(names => Object.entries(names ?? {}))
    .filter(([, v]) => v && typeof v === 'string')
  return parts.length ? parts.map(([k, v]) => `${k} ${v}`).join(', ') : 'everywhere in the organization'
}

export const subjectKinds = { ServiceAccount: 'service account', User: 'user', IdentityPool: 'identity pool' }

/** The names of all objects at a path; [] if the caller may not list them. */
export const namesAt = path =>
  get(path, { background: true }).then(list => list.items.map(i => i.metadata.name), () => [])

/** The subjects of an organization that can get a role, as options "kind/name". */
export async function subjectChoices(org) {
  const [accounts, users] = await Promise.all(['serviceaccounts', 'users'].map(p => namesAt(resource(org, p))))
  return [
    ...accounts.map(a => [`ServiceAccount/${a}`, `${a} (service account)`]),
    ...users.map(u => [`User/${u}`, `${u} (user)`]),
  ]
}

/** Splits "kind/name". Names of users may contain a slash. */
export function parseSubject(id) {
  const [kind, ...rest] = id.split('/')
  return { kind, name: rest.join('/') }
}

export const scopeChoices = [
  ['all', 'Everywhere in the organization'],
  ['names', 'Resources with given names'],
  ['cel', 'A condition (CEL)'],
]

const nameFields = (v, ctl, instances) => html`
  <div class="fields">
    ${field('Instance', select(v, 'instance', ctl, [['', 'any'], ...instances.map(i => [i])]))}
    ${field('Tenant', input(v, 'tenant', ctl, { placeholder: 'any' }))}
    ${field('Namespace', input(v, 'namespace', ctl, { placeholder: 'any' }))}
    ${field('Topic', input(v, 'topic', ctl, { placeholder: 'any, or orders-*' }))}
  </div>`

const celField = v => field('Condition', textArea(v, 'cel', { required: true }),
  html`For example <code>srn.instance == 'prod' && srn.topic_name.startsWith('orders-')</code>`)

/** The controls for the scope of a binding. v.where is one of the choices. */
export const scopeFields = (v, ctl, instances, choices = scopeChoices) => html`
  ${field('Scope', select(v, 'where', ctl, choices))}
  ${v.where === 'names' ? nameFields(v, ctl, instances) : nothing}
  ${v.where === 'cel' ? celField(v) : nothing}`

/** The resource names of the scope controls that are not empty. */
export const commonNames = v =>
  Object.fromEntries(['instance', 'tenant', 'namespace', 'topic'].filter(k => v[k]).map(k => [k, v[k]]))
