// What every object of the resource API has: its YAML, its deletion, and its form when it
// is new. Changes are in edit.js.
import { html, nothing } from './html.js'
import { call, del, get, resource } from './api.js'
import { confirm, frame, modal, toast } from './dialog.js'
import { withoutBookkeeping } from './format.js'
import { kindOf } from './snippets.js'
import { badge, button, codeBlock, failure, loading } from './widgets.js'
import { LiveList } from './watch.js'
import { update } from './store.js'
import { go, link } from './router.js'

const yaml = 'application/yaml'
export const protectedBy = 'cloud.vendor.io/destroy-protected'
export const isProtected = o => (o.metadata.annotations?.[protectedBy] ?? 'false') !== 'false'

/** The steps that the service took with an object, from the organization's events. */
export function eventsOf(ctx) {
  const list = new LiveList(`/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(ctx.org)}/events`, ctx.signal)
  return o => o ? list.items.filter(e => e.regarding?.uid === o.metadata.uid) : []
}

/** The text as the server has it, read only. */
export function yamlView(o) {
  const state = yamlView.state ??= { key: '', text: '' }
  const key = o.metadata.uid + o.metadata.resourceVersion
  if (state.key !== key) {
    state.key = key
    get(o.path, { accept: yaml, background: true }).then(t => { state.text = withoutBookkeeping(t); update() }).catch(e => { state.text = e.message; update() })
  }
  return state.text ? codeBlock(state.text, 'YAML', 'tall') : loading(6)
}

/** Deletes an object after its name was typed, and goes to the list. */
export function remove(o, plural, page, { text, query = '' } = {}) {
  const name = o.metadata.name, org = o.metadata.namespace
  return confirm({
    title: `Delete ${name}?`, name, action: 'Delete', text: text ?? 'It cannot be undone.',
    run: async () => {
      await del(resource(org, plural, name) + query, { body: { preconditions: { uid: o.metadata.uid } }, contentType: 'application/json' })
      toast(`${name} is being deleted.`)
      if (page) go(link(org, page))
    },
  })
}

/** The buttons of every detail page. */
export const usualActions = (o, plural, page, more = {}) => html`
  ${more.before ?? nothing}
  ${button('Edit', { icon: 'edit', permission: `cloud.${plural}.update`, onclick: async () => (await import('./edit.js')).edit(o.metadata.namespace, plural, o.metadata.name) })}
  ${button('Delete', { icon: 'trash', kind: 'danger', permission: `cloud.${plural}.delete`, disabled: !!o.metadata.deletionTimestamp, onclick: () => remove(o, plural, page, more.removal) })}`

export const protection = o => isProtected(o) ? badge('info', 'Protected', `The annotation ${protectedBy} refuses its deletion`) : nothing

/**
 * A form in a dialog. build(values) gives the object to create; checked by the server,
 * whose causes are shown. @returns {Promise<any>} the object that was created
 */
export function create({ title, org, plural, values, view, build, action = 'Create', wide }) {
  let busy = false, error = null
  return modal(ctl => frame(ctl, title, html`<div class="stack">${failure(error)}${view(values, ctl)}</div>`,
    html`<button type="button" @click=${() => ctl.close()}>Cancel</button><button class="primary" ?disabled=${busy}>${busy ? 'Working…' : action}</button>`,
    { submit: async e => {
      if (!e.target.reportValidity()) return
      busy = true
      error = null
      ctl.update()
      try {
        const body = build(values)
        const made = await call('POST', `${resource(org, plural)}?fieldManager=freshet-console`, { body: { apiVersion: 'cloud.vendor.io/v1alpha1', kind: kindOf(plural), ...body } })
        toast(`${made.data.metadata.name} is created.`)
        ctl.close(made.data)
      } catch (err) { error = err; busy = false; ctl.update() }
    } }), { className: wide ? 'wide-box' : '' })
}

/** An input bound to a key of values. */
export const input = (values, key, ctl, o = {}) => html`<input name=${key} .value=${values[key] ?? ''} ?required=${o.required} pattern=${o.pattern ?? nothing} type=${o.type ?? 'text'} min=${o.min ?? nothing} max=${o.max ?? nothing} maxlength=${o.maxlength ?? nothing} placeholder=${o.placeholder ?? nothing}
  ?autofocus=${o.autofocus} autocomplete="off" spellcheck="false" title=${o.title ?? nothing} @input=${e => { values[key] = e.target.value; ctl.update() }}>`
export const select = (values, key, ctl, options) => html`<select name=${key} @change=${e => { values[key] = e.target.value; ctl.update() }}>${options.map(([id, text]) => html`<option value=${id} ?selected=${values[key] === id}>${text ?? id}</option>`)}</select>`

export const namePattern = '[a-z0-9]([a-z0-9.\\-]*[a-z0-9])?'
export const nameTitle = 'Small letters, digits and dashes; it begins and ends with a letter or digit'
