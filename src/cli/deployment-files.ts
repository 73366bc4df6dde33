/** The values that a deployment file is written with, by their names in it; a list is written with spaces between. */
export type DeploymentValues = Readonly<Record<string, string | readonly string[]>>;

/** What neither systemd's nor Caddy's syntax gives a meaning; a space would end a value there. */
const PLAIN = /^[\w./@:+?=&[\]-]*$/;

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
    const given = values[name];
    if (given === undefined) throw new Error(`The template asks for ${name}.`);
    const words = [given].flat();
    const wrong = words.find((word) => !PLAIN.test(word));
    if (wrong !== undefined) {
      throw new UnwritableValue(
        `"${wrong}" cannot be written into a file of settings: choose one of letters, digits and signs such as / . - _, without spaces.`,
      );
    }
    return words.join(' ');
  });
}
