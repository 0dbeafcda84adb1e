// The forms that grant a role and create a role.
import { html } from '../lib/html.js'
import { apiRoot, get, resource } from '../lib/api.js'
import { commonNames, namesAt, parseSubject, scopeFields, subjectChoices } from '../lib/bindings.js'
import { field, input, namePattern, nameTitle, select } from '../lib/fields.js'
import { create } from '../lib/objects.js'
import { clearPermissions, rulesIn } from '../lib/perms.js'
import { go, link } from '../lib/router.js'

const apiGroup = 'cloud.vendor.io'
const nameOptions = { pattern: namePattern, title: nameTitle }

function bindingOf(v) {
  const { kind, name } = parseSubject(v.subject)
  const [roleKind, role] = v.role.split('/')
  const slug = name.replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '')
  return {
    metadata: v.name ? { name: v.name } : { generateName: `${slug}-${role}-` },
    spec: {
      roleRef: { apiGroup, kind: roleKind, name: role },
      subjects: [{ apiGroup, kind, name }],
      ...(v.where === 'names' && { resourceNameRestriction: { common: commonNames(v) } }),
      ...(v.where === 'cel' && { cel: v.cel }),
    },
  }
}

/** Grants a role with a form. subject, if given, is selected: {kind, name}. */
export async function newBinding(org, subject) {
  const [predefined, own, subjects, instances] = await Promise.all([
    namesAt(`${apiRoot}/clusterroles`),
    namesAt(resource(org, 'roles')),
    subjectChoices(org),
    namesAt(resource(org, 'messaginginstances')),
  ])
  const roles = [
    ...own.map(r => [`Role/${r}`, `${r} (own)`]),
    ...predefined.map(r => [`ClusterRole/${r}`, r]),
  ]
  const created = await create({
    title: 'Grant a role',
    org,
    plural: 'rolebindings',
    action: 'Grant',
    wide: true,
    values: {
      subject: subject ? `${subject.kind}/${subject.name}` : subjects[0]?.[0] ?? '',
      role: 'ClusterRole/topic-consumer',
      name: '',
      where: 'all',
      instance: '',
      tenant: '',
      namespace: '',
      topic: '',
      cel: '',
    },
    view: (v, ctl) => html`
      <div class="fields">
        ${field('Subject', select(v, 'subject', ctl, subjects))}
        ${field('Role', select(v, 'role', ctl, roles))}
      </div>
      ${scopeFields(v, ctl, instances)}
      ${field('Name of the binding', input(v, 'name', ctl, { ...nameOptions, placeholder: 'generated' }))}`,
    build: bindingOf,
  })
  clearPermissions()
  return created
}

/** Creates a role with a form, and opens its page. */
export async function newRole(org) {
  const held = rulesIn(org)
  const clusterRoles = await get(`${apiRoot}/clusterroles`, { background: true }).then(l => l.items, () => [])
  const permissions = [...new Set(clusterRoles.flatMap(r => r.spec.permissions ?? []))].sort()
  const permissionOption = (v, permission, ctl) => {
    const onchange = e => {
      if (e.target.checked) v.chosen.add(permission)
      else v.chosen.delete(permission)
      ctl.update()
    }
    return html`
      <label class="check small">
        <input type="checkbox" .checked=${v.chosen.has(permission)} ?disabled=${held && !held.all.has(permission)}
          @change=${onchange}><code>${permission}</code>
      </label>`
  }
  const created = await create({
    title: 'New role',
    org,
    plural: 'roles',
    wide: true,
    values: { name: '', description: '', chosen: new Set(), filter: '' },
    view: (v, ctl) => html`
      <div class="fields">
        ${field('Name', input(v, 'name', ctl, { required: true, autofocus: true, ...nameOptions }))}
        ${field('Description', input(v, 'description', ctl, { maxlength: 1024 }))}
      </div>
      ${field(`Permissions: ${v.chosen.size} selected`, input(v, 'filter', ctl, { placeholder: 'Filter' }),
        'You can select only permissions that you have in the whole organization.')}
      <div class="picks">
        ${permissions.filter(p => p.includes(v.filter)).map(p => permissionOption(v, p, ctl))}
      </div>`,
    build: v => ({
      metadata: { name: v.name },
      spec: { ...(v.description && { description: v.description }), permissions: [...v.chosen].sort() },
    }),
  })
  clearPermissions()
  if (created) go(link(org, 'roles', ['role', created.metadata.name]))
}
