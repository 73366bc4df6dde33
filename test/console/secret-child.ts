import { consoleSecret } from '../../src/console/people/secret.ts';

const [directory = ''] = process.argv.slice(2);
process.stdout.write(`${consoleSecret(directory)}\n`);
