import { useMemo, useState } from 'preact/hooks';
import type { JsonObject, JsonValue } from '../../../json/json-value.ts';
import { CopyButton, CopyText } from '../components/copy-button.tsx';
import { Section } from '../components/page-header.tsx';
import { Tabs } from '../components/tabs.tsx';
import { formatBytes } from '../format.ts';
import { KEY_VARIABLE, LANGUAGES, type Language, snippet } from './snippets.ts';

/** A longer text would make the page slow, and nobody reads it. */
const SHOWN_LENGTH_MAX = 40_000;

const NAMES: Readonly<Record<Language, string>> = {
  curl: 'curl',
  typescript: 'TypeScript',
  python: 'Python',
};

/** The request as a program to copy. */
export function Code({ body }: { readonly body: JsonObject<JsonValue> | null }) {
  const [language, setLanguage] = useState<Language>('curl');
  const text = useMemo(
    () => (body === null ? null : snippet(language, location.origin, body)),
    [language, body],
  );
  return (
    <Section
      title="Use it in your code"
      description={
        <>
          The same request as a program. It reads the API key from <code>{KEY_VARIABLE}</code>.
        </>
      }
    >
      <Tabs
        label="Language"
        options={LANGUAGES.map((value) => ({ value, label: NAMES[value] }))}
        value={language}
        onChange={setLanguage}
      >
        {text === null ? (
          <p class="muted">The request is not valid JSON yet.</p>
        ) : text.length > SHOWN_LENGTH_MAX ? (
          <div class="row">
            <span>{formatBytes(text.length)}, too long to be shown.</span>
            <CopyButton text={text} />
          </div>
        ) : (
          <div class="playground-code">
            <CopyText text={text} is_block />
          </div>
        )}
      </Tabs>
    </Section>
  );
}
