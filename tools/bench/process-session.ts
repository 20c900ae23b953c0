/** Contenders in another process: one line of JSON each way per request. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Session } from "./contender";

interface Answer {
  readonly milliseconds?: number;
  readonly values?: number[];
  readonly error?: string;
}

export async function openProcess(command: string, args: readonly string[], work: object): Promise<Session | string> {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (request: object): Promise<Answer> => {
    child.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await answers.next();
    if (done) throw new Error(`${command} ended`);
    return JSON.parse(value);
  };
  const opened = await ask({ command: "open", ...work });
  const close = async () => {
    child.stdin.end();
    await exited;
  };
  if (opened.error !== undefined) {
    await close();
    return opened.error;
  }
  return {
    run: async (steps) => (await ask({ command: "run", steps })).milliseconds!,
    result: async (count) => (await ask({ command: "result", count })).values!,
    close,
  };
}
