// Forms of what people change of an object. Each reads its fields from the object and
// writes them into a copy; what is sent is the merge patch between the two.
import { html, nothing } from './html.js'
import { get, resource } from './api.js'
import { put } from './patch.js'
import { input, protectedBy, select } from './objects.js'
import { readPairs } from './plane.js'
import { field } from './widgets.js'

const check = (v, key, ctl, label, hint = '') => html`<label class="check"><input type="checkbox" name=${key} .checked=${!!v[key]} @change=${e => { v[key] = e.target.checked; ctl.update() }}> ${label} ${hint ? html`<small>${hint}</small>` : nothing}</label>`
const isProtected = o => (o.metadata.annotations?.[protectedBy] ?? 'false') !== 'false'
const protect = (v, o) => { if (v.protected !== isProtected(o)) put(o, ['metadata', 'annotations', protectedBy], v.protected ? 'true' : undefined) }
const protection = (v, ctl) => check(v, 'protected', ctl, 'Protected from deletion')

export const forms = {
  messaginginstances: {
    read: o => ({ keys: !!o.spec.auth?.apikey, life: String(o.spec.auth?.oauth2?.tokenLifetimeSeconds ?? ''), protected: isProtected(o) }),
    view: (v, ctl) => html`${check(v, 'keys', ctl, 'Accept API keys', 'access tokens are accepted anyway')}
      ${v.keys ? nothing : html`<p class="callout warn">API keys are answered with 401 from the moment this is saved, and no key can be made for the instance.</p>`}
      ${field('Access tokens live', input(v, 'life', ctl, { type: 'number', min: 1, max: 2592000, placeholder: '86400' }), 'Seconds, at most 30 days. Tokens that there are keep their end.')}${protection(v, ctl)}`,
    write: (v, o) => {
      const auth = o.spec.auth ??= {}
      if (v.keys) auth.apikey ??= {}
      else delete auth.apikey
      if (v.life) put(auth, ['oauth2', 'tokenLifetimeSeconds'], Number(v.life))
      else delete auth.oauth2?.tokenLifetimeSeconds
      if (!v.keys) auth.oauth2 ??= {}
      protect(v, o)
    },
  },
  messagingclusters: {
    read: o => ({ displayName: o.spec.displayName ?? '', stream: o.spec.config?.protocols?.stream != null, format: o.spec.config?.custom?.['registry.format'] === 'true', protected: isProtected(o) }),
    view: (v, ctl) => html`${field('Display name', input(v, 'displayName', ctl, { maxlength: 253, autofocus: true }), 'For people.')}
      ${check(v, 'stream', ctl, 'Stream protocol', 'Kafka clients can connect')}${check(v, 'format', ctl, 'Registry honours the parameter format', 'registry.format')}${protection(v, ctl)}`,
    write: (v, o) => {
      put(o, ['spec', 'displayName'], v.displayName)
      const on = o.spec.config?.protocols?.stream != null
      if (v.stream && !on) { o.spec.config ??= {}; (o.spec.config.protocols ??= {}).stream = {} }
      if (!v.stream && on) delete o.spec.config.protocols.stream
      if (v.format !== (o.spec.config?.custom?.['registry.format'] === 'true')) put(o, ['spec', 'config', 'custom', 'registry.format'], v.format ? 'true' : undefined)
      protect(v, o)
    },
  },
  serviceaccounts: { read: () => ({}), view: () => html`<p class="muted">An account has no settings of its own: what it may do is given by roles, and its credentials are rotated on its page. Labels help to find it.</p>`, write: () => {} },
  users: {
    read: o => ({ first: o.spec.name?.first ?? '', last: o.spec.name?.last ?? '', email: o.spec.email, was: o.spec.email }),
    view: (v, ctl) => html`<div class="fields">${field('First name', input(v, 'first', ctl, { maxlength: 256, required: !!v.last, autofocus: true }))}${field('Last name', input(v, 'last', ctl, { maxlength: 256, required: !!v.first }))}</div>
      ${field('E-mail', input(v, 'email', ctl, { type: 'email', required: true, maxlength: 254 }))}
      ${v.email.toLowerCase() === v.was.toLowerCase() ? nothing : html`<p class="callout warn">Under another address nobody has signed in yet: every session of the person ends, and they need a new invitation.</p>`}`,
    write: (v, o) => { o.spec.email = v.email; if (v.first) o.spec.name = { ...o.spec.name, first: v.first, last: v.last }; else delete o.spec.name },
  },
  rolebindings: {
    known: async org => {
      const names = kind => get(resource(org, kind), { background: true }).then(l => l.items.map(i => i.metadata.name), () => [])
      const [accounts, users, instances] = await Promise.all(['serviceaccounts', 'users', 'messaginginstances'].map(names))
      return { who: [...accounts.map(a => [`ServiceAccount/${a}`, `${a} (service account)`]), ...users.map(u => [`User/${u}`, `${u} (user)`])], instances }
    },
    read: o => {
      const common = o.spec.resourceNameRestriction?.common ?? {}
      const { messaging, schema, cloud } = o.spec.resourceNameRestriction ?? {}
      const other = o.spec.resourceNames?.length || messaging || schema || cloud || common.organization || common.cluster
      return {
        subjects: (o.spec.subjects ?? []).map(s => `${s.kind}/${s.name}`), add: '', where: other ? 'as' : o.spec.cel ? 'cel' : Object.keys(common).length ? 'names' : 'all', other: !!other,
        instance: common.instance ?? '', tenant: common.tenant ?? '', namespace: common.namespace ?? '', topic: common.topic ?? '', cel: o.spec.cel ?? '',
      }
    },
    view: (v, ctl, known) => html`
      <div class="field"><span>Who</span><div class="rows-list">${v.subjects.map(s => html`<div><span>${s.split('/').slice(1).join('/')}</span><span class="muted small">${s.startsWith('User/') ? 'user' : 'service account'}</span><span class="spacer"></span>
        <button type="button" class="ghost small" ?disabled=${v.subjects.length === 1} aria-label=${`Remove ${s.split('/').slice(1).join('/')}`} @click=${() => { v.subjects = v.subjects.filter(x => x !== s); ctl.update() }}>Remove</button></div>`)}</div></div>
      ${field('Give it to', html`<select name="add" @change=${e => { if (e.target.value) v.subjects = [...v.subjects, e.target.value]; e.target.value = ''; ctl.update() }}><option value="">Choose…</option>${known.who.filter(([id]) => !v.subjects.includes(id)).map(([id, text]) => html`<option value=${id}>${text}</option>`)}</select>`)}
      ${field('Where', select(v, 'where', ctl, [['all', 'Everywhere in the organization'], ['names', 'By names'], ['cel', 'By a condition (CEL)'], ...(v.other ? [['as', 'As it is: change it as YAML']] : [])]))}
      ${v.where === 'names' ? html`<div class="fields">${field('Instance', select(v, 'instance', ctl, [['', 'any'], ...known.instances.map(i => [i])]))}${field('Tenant', input(v, 'tenant', ctl, { placeholder: 'any' }))}${field('Namespace', input(v, 'namespace', ctl, { placeholder: 'any' }))}${field('Topic', input(v, 'topic', ctl, { placeholder: 'any, or orders-*' }))}</div>` : nothing}
      ${v.where === 'cel' ? field('Condition', html`<textarea name="cel" rows="3" spellcheck="false" required .value=${v.cel} @input=${e => { v.cel = e.target.value }}></textarea>`, html`For example <code>srn.instance == 'prod' && srn.topic_name.startsWith('orders-')</code>`) : nothing}`,
    write: (v, o) => {
      const had = new Map((o.spec.subjects ?? []).map(s => [`${s.kind}/${s.name}`, s]))
      o.spec.subjects = v.subjects.map(id => had.get(id) ?? { apiGroup: 'cloud.vendor.io', kind: id.split('/')[0], name: id.split('/').slice(1).join('/') })
      if (v.where === 'as') return
      delete o.spec.cel
      delete o.spec.resourceNames
      delete o.spec.resourceNameRestriction
      if (v.where === 'cel') o.spec.cel = v.cel
      const common = Object.fromEntries(['instance', 'tenant', 'namespace', 'topic'].filter(k => v[k]).map(k => [k, v[k]]))
      if (v.where === 'names' && Object.keys(common).length) o.spec.resourceNameRestriction = { common }
    },
  },
  roles: {
    read: o => ({ description: o.spec.description ?? '', permissions: (o.spec.permissions ?? []).join('\n') }),
    view: (v, ctl) => html`${field('Description', input(v, 'description', ctl, { maxlength: 1024, autofocus: true }))}
      ${field('Permissions', html`<textarea name="permissions" rows="10" spellcheck="false" .value=${v.permissions} @input=${e => { v.permissions = e.target.value }}></textarea>`, 'One a line, as service.resource.verb.')}`,
    write: (v, o) => { put(o, ['spec', 'description'], v.description); o.spec.permissions = v.permissions.split(/\s+/).filter(Boolean) },
  },
}

/** Labels, which every object has. */
export const labelsOf = o => Object.entries(o.metadata.labels ?? {}).map(([k, x]) => `${k}=${x}`).join('\n')
export function writeLabels(text, o) {
  const labels = readPairs(text)
  if (Object.keys(labels).length) o.metadata.labels = labels
  else delete o.metadata.labels
}
const labelsText = v => html`<textarea name="labels" aria-label="Labels" rows="3" spellcheck="false" placeholder="name=value, one a line" .value=${v.labels} @input=${e => { v.labels = e.target.value }}></textarea>`
export const labelsField = (v, alone) => alone ? field('Labels', labelsText(v)) : html`<details class="more" ?open=${v.labels !== ''}><summary class="muted small">Labels</summary>${labelsText(v)}</details>`
