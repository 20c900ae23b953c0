/** Environment variables. Deno without permissions and Workers don't give them: then they are not set. */

/** An environment variable; undefined where it is empty, not set, or not to be read. */
export function environmentVariable(name: string): string | undefined {
  try {
    return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] || undefined;
  } catch {
    return undefined;
  }
}
