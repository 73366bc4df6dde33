import type { PackageManifest } from './unpack.ts';

/** The build's additions to an executable: an archive of all files, and the manifest that verifies them. */
export const ARCHIVE_NAME = 'program.tar.zst';
export const MANIFEST_NAME = 'program.json';

/** The content of the manifest. */
export interface EmbeddedManifest extends PackageManifest {
  /** The name of the archive beside the executable with more of the files; null where there is none. */
  readonly libraries_archive: string | null;
}
