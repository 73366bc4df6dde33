import { useState } from 'preact/hooks';
import { Button } from './button.tsx';

const CONFIRMED_MS = 2_000;

/** A button that copies a text, and shows the result in its own place. */
export function CopyButton({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [outcome, setOutcome] = useState<'copied' | 'failed' | null>(null);
  const copy = async () => {
    try {
      await copyText(text);
      setOutcome('copied');
    } catch {
      setOutcome('failed');
    }
    setTimeout(() => setOutcome(null), CONFIRMED_MS);
  };
  return (
    <span class="copy-button">
      <Button size="small" onClick={copy}>
        {outcome === null ? label : outcome === 'copied' ? 'Copied' : 'Copy by hand'}
      </Button>
      <span class="visually-hidden" role="status">
        {outcome === 'copied' ? 'Copied to the clipboard' : ''}
      </span>
    </span>
  );
}

/** A text for use elsewhere, such as a key or a command, with its copy button. */
export function CopyText({
  text,
  label,
  is_block = false,
}: {
  readonly text: string;
  readonly label?: string;
  readonly is_block?: boolean;
}) {
  return (
    <div class={is_block ? 'copy-text block' : 'copy-text'}>
      {is_block ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must take the keyboard's focus.
        <pre tabIndex={0}>
          <code>{text}</code>
        </pre>
      ) : (
        <code>{text}</code>
      )}
      <CopyButton text={text} {...(label === undefined ? {} : { label })} />
    </div>
  );
}

async function copyText(text: string): Promise<void> {
  // Browsers have a clipboard only on https and localhost.
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const is_copied = document.execCommand('copy');
  area.remove();
  if (!is_copied) throw new Error('This browser does not copy here.');
}
