/** The command as a user of a pipe runs it: its exit code and what it wrote. */
import { runCommand } from "../src/command/command";

export async function run(...args: string[]): Promise<{ code: number; out: string; error: string }> {
  const written = { out: "", error: "" };
  const code = await runCommand(args, {
    out: (text) => {
      written.out += text;
    },
    error: (text) => {
      written.error += text;
    },
    isTerminal: false,
  });
  return { code, ...written };
}
