import type { PackageManifest } from './unpack.ts';

/** What the build puts into an executable, beside its launcher: all files, and what they must be. */
export const ARCHIVE_NAME = 'program.tar.zst';
export const MANIFEST_NAME = 'program.json';

/** The content of the manifest. */
export interface EmbeddedManifest extends PackageManifest {
  /** The name of the archive with more of the files, which lies beside the executable; null where there is none. */
  readonly libraries_archive: string | null;
}
