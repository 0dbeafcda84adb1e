// The edit forms of the kinds. read(object) returns the values of a form, and
// write(values, copy) changes a copy of the object. edit.js sends the merge patch
// between the object and the copy.
import { html, nothing } from './html.js'
import { resource } from './api.js'
import { commonNames, namesAt, parseSubject, scopeChoices, scopeFields, subjectChoices } from './bindings.js'
import { checkbox, field, input, readPairs, textArea } from './fields.js'
import { setPath } from './patch.js'
import { isProtected, protectedBy } from './status.js'

const protection = (v, ctl) => checkbox(v, 'protected', ctl, 'Protected from deletion')
const writeProtection = (v, o) => {
  if (v.protected === isProtected(o)) return
  setPath(o, ['metadata', 'annotations', protectedBy], v.protected ? 'true' : undefined)
}

const messaginginstances = {
  read: o => ({
    keys: !!o.spec.auth?.apikey,
    life: String(o.spec.auth?.oauth2?.tokenLifetimeSeconds ?? ''),
    protected: isProtected(o),
  }),
  view: (v, ctl) => html`
    ${checkbox(v, 'keys', ctl, 'Accept API keys', 'access tokens are always accepted')}
    ${v.keys ? nothing : html`<p class="callout warn">
      After you save this, requests with API keys get status 401, and no API key can be created for the instance.
    </p>`}
    ${field('Access token lifetime',
      input(v, 'life', ctl, { type: 'number', min: 1, max: 2592000, placeholder: '86400' }),
      'In seconds, at most 30 days. Tokens that were already issued keep their expiration.')}
    ${protection(v, ctl)}`,
  write: (v, o) => {
    const auth = o.spec.auth ??= {}
    if (v.keys) auth.apikey ??= {}
    else delete auth.apikey
    if (v.life) setPath(auth, ['oauth2', 'tokenLifetimeSeconds'], Number(v.life))
    else delete auth.oauth2?.tokenLifetimeSeconds
    if (!v.keys) auth.oauth2 ??= {}
    writeProtection(v, o)
  },
}

const hasKafka = o => o.spec.config?.protocols?.stream != null
const hasFormat = o => o.spec.config?.custom?.['registry.format'] === 'true'

const messagingclusters = {
  read: o => ({
    displayName: o.spec.displayName ?? '',
    stream: hasKafka(o),
    format: hasFormat(o),
    protected: isProtected(o),
  }),
  view: (v, ctl) => html`
    ${field('Display name', input(v, 'displayName', ctl, { maxlength: 253, autofocus: true }),
      'Shown next to the name.')}
    ${checkbox(v, 'stream', ctl, 'Kafka protocol', 'Kafka clients can connect')}
    ${checkbox(v, 'format', ctl, 'The schema registry supports the format parameter', 'registry.format')}
    ${protection(v, ctl)}`,
  write: (v, o) => {
    setPath(o, ['spec', 'displayName'], v.displayName)
    const enabled = hasKafka(o)
    if (v.stream && !enabled) {
      o.spec.config ??= {}
      o.spec.config.protocols ??= {}
      o.spec.config.protocols.stream = {}
    }
    if (!v.stream && enabled) delete o.spec.config.protocols.stream
    if (v.format !== hasFormat(o)) {
      setPath(o, ['spec', 'config', 'custom', 'registry.format'], v.format ? 'true' : undefined)
    }
    writeProtection(v, o)
  },
}

const serviceaccounts = {
  read: () => ({}),
  view: () => html`<p class="muted">
    A service account has no settings. Roles grant its permissions, and you rotate its credentials on its page.
    Labels help you find it.
  </p>`,
  write: () => {},
}

const users = {
  read: o => ({
    first: o.spec.name?.first ?? '',
    last: o.spec.name?.last ?? '',
    email: o.spec.email,
    before: o.spec.email,
  }),
  view: (v, ctl) => html`
    <div class="fields">
      ${field('First name', input(v, 'first', ctl, { maxlength: 256, required: !!v.last, autofocus: true }))}
      ${field('Last name', input(v, 'last', ctl, { maxlength: 256, required: !!v.first }))}
    </div>
    ${field('E-mail', input(v, 'email', ctl, { type: 'email', required: true, maxlength: 254 }))}
    ${v.email.toLowerCase() === v.before.toLowerCase() ? nothing : html`<p class="callout warn">
      A new address ends all sessions of the user, who then needs a new invitation to sign in.
    </p>`}`,
  write: (v, o) => {
    o.spec.email = v.email
    if (v.first) o.spec.name = { ...o.spec.name, first: v.first, last: v.last }
    else delete o.spec.name
  },
}

function readScope(o) {
  const { common = {}, messaging, schema, cloud } = o.spec.resourceNameRestriction ?? {}
  const unsupported = o.spec.resourceNames?.length || messaging || schema || cloud || common.organization ||
    common.cluster
  if (unsupported) return 'as'
  if (o.spec.cel) return 'cel'
  return Object.keys(common).length ? 'names' : 'all'
}

function subjectRow(v, id, ctl) {
  const { kind, name } = parseSubject(id)
  const removeSubject = () => {
    v.subjects = v.subjects.filter(x => x !== id)
    ctl.update()
  }
  return html`
    <div>
      <span>${name}</span>
      <span class="muted small">${kind === 'User' ? 'user' : 'service account'}</span>
      <span class="spacer"></span>
      <button type="button" class="ghost small" ?disabled=${v.subjects.length === 1} aria-label=${`Remove ${name}`}
        @click=${removeSubject}>Remove</button>
    </div>`
}

function addSubject(v, subjects, ctl) {
  const onchange = e => {
    if (e.target.value) v.subjects = [...v.subjects, e.target.value]
    e.target.value = ''
    ctl.update()
  }
  return html`
    <select name="add" @change=${onchange}>
      <option value="">Choose…</option>
      ${subjects.filter(([id]) => !v.subjects.includes(id)).map(([id, text]) => html`
        <option value=${id}>${text}</option>`)}
    </select>`
}

const rolebindings = {
  choices: async org => {
    const [subjects, instances] = await Promise.all([
      subjectChoices(org),
      namesAt(resource(org, 'messaginginstances')),
    ])
    return { subjects, instances }
  },
  read: o => {
    const common = o.spec.resourceNameRestriction?.common ?? {}
    const where = readScope(o)
    return {
      subjects: (o.spec.subjects ?? []).map(s => `${s.kind}/${s.name}`),
      add: '',
      where,
      unsupported: where === 'as',
      instance: common.instance ?? '',
      tenant: common.tenant ?? '',
      namespace: common.namespace ?? '',
      topic: common.topic ?? '',
      cel: o.spec.cel ?? '',
    }
  },
  view: (v, ctl, choices) => html`
    <div class="field">
      <span>Granted to</span>
      <div class="rows-list">${v.subjects.map(id => subjectRow(v, id, ctl))}</div>
    </div>
    ${field('Also grant it to', addSubject(v, choices.subjects, ctl))}
    ${scopeFields(v, ctl, choices.instances,
      v.unsupported ? [...scopeChoices, ['as', 'Unchanged (edit it as YAML)']] : scopeChoices)}`,
  write: (v, o) => {
    const before = new Map((o.spec.subjects ?? []).map(s => [`${s.kind}/${s.name}`, s]))
    o.spec.subjects = v.subjects.map(id => before.get(id) ?? { apiGroup: 'cloud.vendor.io', ...parseSubject(id) })
    if (v.where === 'as') return
    delete o.spec.cel
    delete o.spec.resourceNames
    delete o.spec.resourceNameRestriction
    if (v.where === 'cel') o.spec.cel = v.cel
    const common = commonNames(v)
    if (v.where === 'names' && Object.keys(common).length) o.spec.resourceNameRestriction = { common }
  },
}

const roles = {
  read: o => ({ description: o.spec.description ?? '', permissions: (o.spec.permissions ?? []).join('\n') }),
  view: (v, ctl) => html`
    ${field('Description', input(v, 'description', ctl, { maxlength: 1024, autofocus: true }))}
    ${field('Permissions', textArea(v, 'permissions', { rows: 10 }), 'One per line, as service.resource.verb.')}`,
  write: (v, o) => {
    setPath(o, ['spec', 'description'], v.description)
    o.spec.permissions = v.permissions.split(/\s+/).filter(Boolean)
  },
}

/** The forms by the plural of the kind. choices(org), if present, loads the options of the controls. */
export const forms = { messaginginstances, messagingclusters, serviceaccounts, users, rolebindings, roles }

/** The labels of an object as lines of text. */
export const labelsOf = o => Object.entries(o.metadata.labels ?? {}).map(([k, v]) => `${k}=${v}`).join('\n')

export function writeLabels(text, o) {
  const labels = readPairs(text)
  if (Object.keys(labels).length) o.metadata.labels = labels
  else delete o.metadata.labels
}

const labelsText = v => textArea(v, 'labels', { label: 'Labels', placeholder: 'name=value, one per line' })

/** The control for labels; prominent if the form has no other control. */
export const labelsField = (v, prominent) => prominent ? field('Labels', labelsText(v)) : html`
  <details class="more" ?open=${v.labels !== ''}>
    <summary class="muted small">Labels</summary>
    ${labelsText(v)}
  </details>`
