// Has the browser make or use a passkey, and sends the form with what came of it. The
// question and the answer are parts of the form: this asks nobody for anything.
const can = window.PublicKeyCredential?.parseRequestOptionsFromJSON && window.PublicKeyCredential.parseCreationOptionsFromJSON

const why = {
  NotAllowedError: 'No passkey was used: it was cancelled, or there is none for this site on this device. You can try again.',
  InvalidStateError: 'This device has a passkey of yours already. Use another device, or sign in with that one.',
  SecurityError: 'The browser does not allow passkeys at this address.',
}

async function answer(form) {
  const options = JSON.parse(form.dataset.options)
  const made = form.dataset.passkey === 'new'
    ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
    : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) })
  return JSON.stringify(made.toJSON())
}

for (const form of document.querySelectorAll('form[data-passkey]')) {
  if (!can) continue
  const section = form.closest('[hidden]')
  if (section) section.hidden = false
  form.addEventListener('submit', async event => {
    event.preventDefault()
    const button = form.querySelector('button'), says = form.querySelector('[role=status]')
    button.disabled = true
    says.textContent = ''
    // who has typed a name means that person
    for (const name of ['organization', 'name']) {
      const typed = document.querySelector(`form:not([data-passkey]) [name=${name}]`)
      if (typed && form.elements[name]) form.elements[name].value = typed.value
    }
    try {
      form.elements.credential.value = await answer(form)
      form.submit()
    } catch (problem) {
      says.textContent = why[problem.name] ?? `The passkey could not be used: ${problem.message}`
      button.disabled = false
      button.focus()
    }
  })
}
