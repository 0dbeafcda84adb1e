// The deletion of a subject or of one version, in two steps: soft, then permanent.
import { html, nothing } from '../lib/html.js'
import { frame, modal, toast } from '../lib/dialog.js'
import { field } from '../lib/fields.js'
import { registryError } from './schemachanges.js'

/**
 * Deletes a subject, or a version of it if version is given. softDeleted skips the first
 * step. afterSoft and afterPermanent are called after the steps.
 */
export function deleteSchema({ client, path }, { subject, version, softDeleted, afterSoft, afterPermanent }) {
  const what = version ? `version ${version}` : subject
  const versionPath = version ? `/versions/${version}` : ''
  let permanent = softDeleted // the current step
  let typed = ''
  let error = null
  let busy = false

  const url = () => path(`/subjects/*${versionPath}${permanent ? '?permanent=true' : ''}`, subject)
  const run = async ctl => {
    busy = true
    error = null
    ctl.update()
    try {
      await client.call('DELETE', url())
      toast(permanent ? `${what} was deleted permanently.` : `${what} was soft-deleted.`)
      if (permanent) {
        ctl.close()
        await afterPermanent()
        return
      }
      await afterSoft()
      permanent = true
    } catch (e) {
      error = e
    }
    busy = false
    ctl.update()
  }
  const nameField = ctl => {
    const oninput = e => {
      typed = e.target.value
      ctl.update()
    }
    return field(html`Type <b class="mono">${subject}</b> to delete permanently`,
      html`<input name="typed" autocomplete="off" spellcheck="false" @input=${oninput}>`)
  }
  const body = ctl => html`
    <div class="stack">
      <ol class="two-steps">
        <li class=${permanent ? 'ok' : 'now'}>
          <b>Soft delete</b>
          <p>It disappears from lists and from compatibility checks. Consumers can still read it by its id.</p>
        </li>
        <li class=${permanent ? 'now' : ''}>
          <b>Delete permanently</b>
          <p>Consumers that have not cached it cannot read records written with it. You cannot undo this.</p>
        </li>
      </ol>
      ${permanent ? nameField(ctl) : nothing}
      ${registryError(error)}
    </div>`
  const label = () => {
    if (busy) return 'Working…'
    return permanent ? 'Delete permanently' : 'Soft delete'
  }
  const buttons = ctl => html`
    <button type="button" @click=${() => ctl.close()}>${permanent ? 'Keep it soft-deleted' : 'Cancel'}</button>
    <button class="danger" ?disabled=${busy || permanent && typed !== subject}>${label()}</button>`
  return modal(ctl => frame(ctl, `Delete ${what}`, body(ctl), buttons(ctl), { submit: () => run(ctl) }))
}
