// What the pages of all kinds of the resource API share: YAML, events, creation and
// deletion. Changes of existing objects are in edit.js.
import { html, nothing } from './html.js'
import { call, del, get, patch, resource } from './api.js'
import { codeBlock } from './copy.js'
import { confirm, formDialog, toast } from './dialog.js'
import { withoutManagedFields } from './format.js'
import { kindOf } from './requests.js'
import { isProtected, protectedBy } from './status.js'
import { button, loading } from './widgets.js'
import { LiveList } from './watch.js'
import { update } from './store.js'
import { go, link } from './router.js'

const yaml = 'application/yaml'

/** Returns a function that lists the events of an object, from the organization's events. */
export function eventsOf(ctx) {
  const list = new LiveList(`/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(ctx.org)}/events`, ctx.signal)
  return o => o ? list.items.filter(e => e.regarding?.uid === o.metadata.uid) : []
}

const shownYAML = { key: '', text: '' }

/** The YAML of an object as the server returns it, read-only. */
export function yamlView(o) {
  const key = o.metadata.uid + o.metadata.resourceVersion
  if (shownYAML.key !== key) {
    shownYAML.key = key
    get(o.path, { accept: yaml, background: true })
      .then(withoutManagedFields, e => e.message)
      .then(text => {
        shownYAML.text = text
        update()
      })
  }
  return shownYAML.text ? codeBlock(shownYAML.text, 'YAML', 'tall') : loading(6)
}

/** Deletes an object after the user has typed its name, and opens the list. */
export function remove(o, plural, page, { text, query = '' } = {}) {
  const { name, namespace: org, uid } = o.metadata
  return confirm({
    title: `Delete ${name}?`,
    name,
    action: 'Delete',
    text: text ?? 'You cannot undo this.',
    run: async () => {
      const body = { preconditions: { uid } }
      await del(resource(org, plural, name) + query, { body, contentType: 'application/json' })
      toast(`${name} is being deleted.`)
      if (page) go(link(org, page))
    },
  })
}

/** The buttons of every detail page: more.before, Edit and Delete. */
export function objectActions(o, plural, page, more = {}) {
  const { name, namespace, deletionTimestamp } = o.metadata
  const edit = async () => (await import('./edit.js')).edit(namespace, plural, name)
  return html`
    ${more.before ?? nothing}
    ${button('Edit', { icon: 'edit', permission: `cloud.${plural}.update`, onclick: edit })}
    ${button('Delete', {
      icon: 'trash',
      kind: 'danger',
      permission: `cloud.${plural}.delete`,
      disabled: !!deletionTimestamp,
      onclick: () => remove(o, plural, page, more.removal),
    })}`
}

/** The button that protects an object from deletion, or removes the protection. */
export const protectButton = (o, plural) => button(isProtected(o) ? 'Unprotect' : 'Protect', {
  icon: 'lock',
  permission: `cloud.${plural}.update`,
  onclick: () => patch(o.path, { metadata: { annotations: { [protectedBy]: isProtected(o) ? null : 'true' } } }),
})

/**
 * A form in a dialog that creates an object. build(values) returns the object, without
 * apiVersion and kind. @returns {Promise<any>} the created object
 */
export const create = ({ title, org, plural, values, view, build, action = 'Create', wide }) => formDialog({
  title,
  values,
  view,
  action,
  wide,
  run: async () => {
    const body = { apiVersion: 'cloud.vendor.io/v1alpha1', kind: kindOf(plural), ...build(values) }
    const { data } = await call('POST', `${resource(org, plural)}?fieldManager=freshet-console`, { body })
    toast(`${data.metadata.name} was created.`)
    return data
  },
})
