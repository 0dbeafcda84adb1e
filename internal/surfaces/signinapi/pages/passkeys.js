// Makes the browser create or use a passkey, and submits the form with the result. The
// WebAuthn options and the result are fields of the form; the script makes no requests.
const supported = window.PublicKeyCredential?.parseRequestOptionsFromJSON && window.PublicKeyCredential.parseCreationOptionsFromJSON

const messages = {
  NotAllowedError: 'No passkey was used. You cancelled, or this device has no passkey for this site. You can try again.',
  InvalidStateError: 'This device already has one of your passkeys. Use another device, or sign in with that passkey.',
  SecurityError: 'The browser does not allow passkeys at this address.',
}

async function credential(form) {
  const options = JSON.parse(form.dataset.options)
  const result = form.dataset.passkey === 'new'
    ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
    : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) })
  return JSON.stringify(result.toJSON())
}

for (const form of document.querySelectorAll('form[data-passkey]')) {
  if (!supported) continue
  const section = form.closest('[hidden]')
  if (section) section.hidden = false
  form.addEventListener('submit', async event => {
    event.preventDefault()
    const button = form.querySelector('button'), status = form.querySelector('[role=status]')
    button.disabled = true
    status.textContent = ''
    // If the user has typed a name, the passkey must belong to that user.
    for (const name of ['organization', 'name']) {
      const typed = document.querySelector(`form:not([data-passkey]) [name=${name}]`)
      if (typed && form.elements[name]) form.elements[name].value = typed.value
    }
    try {
      form.elements.credential.value = await credential(form)
      form.submit()
    } catch (problem) {
      status.textContent = messages[problem.name] ?? `The passkey could not be used: ${problem.message}`
      button.disabled = false
      button.focus()
    }
  })
}
