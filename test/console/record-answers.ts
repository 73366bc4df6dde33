/**
 * Writes the answers that the playground shows where nobody can ask yet: `bun run recordings`, after new weights or other
 * examples. The embedded model answers every example in fast mode.
 */
import { EXAMPLES } from '../../src/console/pages/playground/examples.ts';
import { projectFile } from '../../src/files/project-root.ts';
import { ask } from '../support/requests.ts';
import { addAccount, startTestService } from '../support/service.ts';

const service = await startTestService({ embedded: true, cold: false });
const { key } = await addAccount(service);
const answers: Record<string, unknown> = {};
for (const { name, state, questions } of EXAMPLES) {
  const response = await ask(service, key, { state, questions });
  if (!response.ok) throw new Error(await response.text());
  answers[name] = await response.json();
}
await service.close();

const path = projectFile('src/console/pages/playground/recorded-answers.ts');
const declaration = 'const RECORDED: Readonly<Record<string, DecisionResponse>> = ';
const [before] = (await Bun.file(path).text()).split(declaration);
await Bun.write(path, `${before}${declaration}${JSON.stringify(answers)};\n`);
await Bun.$`bunx biome check --write ${path}`;
