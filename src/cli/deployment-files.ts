/** The values that a deployment file is written with, by their names in it. */
export type DeploymentValues = Readonly<Record<string, string>>;

/** What neither systemd's nor Caddy's syntax gives a meaning. */
const PLAIN = /^[\w./@:+?=&[\] -]*$/;

/** A value that cannot be written into a deployment file. */
export class UnwritableValue extends Error {
  override readonly name = 'UnwritableValue';
}

/**
 * The text with each `{{name}}` replaced by its value. Throws `UnwritableValue` for one with a character that would
 * mean something else in the file.
 */
export function fillTemplate(template: string, values: DeploymentValues): string {
  return template.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`The template asks for ${name}.`);
    if (!PLAIN.test(value))
      throw new UnwritableValue(`"${value}" cannot be written into a file of settings.`);
    return value;
  });
}
