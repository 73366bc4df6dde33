import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DOCUMENTS, EXAMPLE_ADDRESS, readDocument } from '../../src/docs/documents.ts';
import { projectFile } from '../../src/files/project-root.ts';
import { type Finished, finished } from '../support/finished.ts';

/** The languages that code in the documents can be in. */
export const LANGUAGES = ['sh', 'ts', 'python', 'json'] as const;
export type Language = (typeof LANGUAGES)[number];

/** A piece of code of a document. */
export interface Snippet {
  readonly language: Language;
  readonly code: string;
  /** Its output as the document shows it, in JSON; null where it shows none. */
  readonly output: string | null;
}

/** The heading of README under which its snippets ask a running service. */
const README_HEADING = '## Ask it\n';

/** The sources of snippets: README, and every document of the service. */
export const SOURCES = ['README', ...DOCUMENTS] as const;
export type SnippetSource = (typeof SOURCES)[number];

/** The Markdown of a source; of README the part that asks. */
async function markdownOf(name: SnippetSource): Promise<string> {
  if (name !== 'README') return (await readDocument(name)).markdown;
  const [, asking] = (await Bun.file(projectFile('README.md')).text()).split(README_HEADING);
  if (asking === undefined) throw new Error(`README.md has no heading ${README_HEADING}`);
  return asking.split('\n## ')[0] ?? '';
}

/** All code of a source in order. JSON that follows a program is its output. Throws for another language. */
export async function snippetsOf(name: SnippetSource): Promise<readonly Snippet[]> {
  const snippets: Snippet[] = [];
  const code = (text: string, { language }: { language?: string } = {}) => {
    const known = LANGUAGES.find((each) => each === language);
    if (known === undefined) throw new Error(`${name}.md has code in ${language ?? 'no language'}: ${text}`);
    const last = snippets.at(-1);
    if (known === 'json' && last !== undefined && last.language !== 'json' && last.output === null) {
      snippets[snippets.length - 1] = { ...last, output: text };
    } else snippets.push({ language: known, code: text, output: null });
    return '';
  };
  Bun.markdown.render(await markdownOf(name), { code });
  return snippets;
}

/** A folder in which snippets run as a reader would run them, with `tds` on the path and an API key. */
export class SnippetRoom implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'tds-docs-'));
  readonly #environment: Readonly<Record<string, string | undefined>>;

  constructor(
    private readonly address: string,
    environment: Readonly<Record<string, string>>,
  ) {
    symlinkSync(projectFile('node_modules'), join(this.directory, 'node_modules'));
    const bin = join(this.directory, 'bin');
    mkdirSync(bin);
    this.#environment = { ...process.env, ...environment, PATH: `${bin}:${process.env.PATH}` };
  }

  /** The snippet's code with the address of the service that the room is for. */
  codeOf({ code }: Snippet): string {
    return code.replaceAll(EXAMPLE_ADDRESS, this.address);
  }

  /** Writes a file into the room; returns its path. */
  async write(name: string, text: string): Promise<string> {
    const path = join(this.directory, name);
    await Bun.write(path, text);
    return path;
  }

  /** Runs a program in the room to its end. */
  run(command: readonly string[]): Promise<Finished> {
    const options = { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' } as const;
    return finished(Bun.spawn([...command], { cwd: this.directory, env: this.#environment, ...options }));
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}
