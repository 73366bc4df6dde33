import { useState } from 'preact/hooks';
import { Button } from './button.tsx';

const CONFIRMED_MS = 2_000;

interface CopyButtonProps {
  /** The text, or what makes it when it is copied; null where there is none to copy. */
  readonly text: string | (() => Promise<string | null>);
  readonly label?: string | undefined;
  /** The button's text where it cannot be copied. */
  readonly failure?: string;
  readonly onCopied?: (() => void) | undefined;
}

/** Copies a text; says so in its own place. */
export function CopyButton({ text, label = 'Copy', failure = 'Copy by hand', onCopied }: CopyButtonProps) {
  const [outcome, setOutcome] = useState<'copied' | 'failed' | null>(null);
  const copy = async () => {
    try {
      const copied = typeof text === 'string' ? text : await text();
      if (copied === null) throw new Error('There is nothing to copy.');
      await copyText(copied);
      setOutcome('copied');
      onCopied?.();
    } catch {
      setOutcome('failed');
    }
    setTimeout(() => setOutcome(null), CONFIRMED_MS);
  };
  return (
    <span class="copy-button">
      <Button size="small" onClick={copy}>
        {outcome === null ? label : outcome === 'copied' ? 'Copied' : failure}
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
  onCopied,
}: Pick<CopyButtonProps, 'label' | 'onCopied'> & {
  readonly text: string;
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
      <CopyButton text={text} label={label} onCopied={onCopied} />
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
