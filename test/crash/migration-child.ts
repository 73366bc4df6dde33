import { openDataDirectory } from '../../src/cli/data-directory.ts';
import { newerMigrations } from './migration.ts';

/** Opens the data directory that it is given as a newer version would, which updates the database. */
process.stdout.write('opening\n');
openDataDirectory(process.argv[2] ?? '', { create: false, migrations: newerMigrations() }).$client.close();
