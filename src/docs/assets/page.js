// The colours that the reader chose in the console, before anything is drawn.
try {
  document.documentElement.dataset.theme = localStorage.getItem('tds-theme') ?? 'system';
} catch {
  // A browser that stores nothing has the system's colours.
}

/** Copies a text, also where the page came without TLS, so that browsers give it no clipboard. */
async function copyText(text) {
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  const is_copied = document.execCommand('copy');
  area.remove();
  if (!is_copied) throw new Error('This browser does not copy here.');
}

/** Puts a button to copy beside each piece of code. */
addEventListener('DOMContentLoaded', () => {
  for (const code of document.querySelectorAll('pre')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.setAttribute('aria-live', 'polite');
    button.addEventListener('click', async () => {
      button.textContent = await copyText(code.textContent).then(
        () => 'Copied',
        () => 'Copy by hand',
      );
      setTimeout(() => {
        button.textContent = 'Copy';
      }, 2000);
    });
    const frame = document.createElement('div');
    frame.className = 'code';
    code.replaceWith(frame);
    frame.append(code, button);
  }
});
