/** Contenders in another process: one line of JSON each way per request. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Costs, Session } from "./contender";

export interface Talk<Answer> {
  /** @throws what the program answers as its `error`, or that it ended */
  ask(request: object): Promise<Answer>;
  close(): Promise<void>;
}

export function talkTo<Answer>(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Talk<Answer> {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, ...env } });
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async ask(request) {
      child.stdin.write(`${JSON.stringify(request)}\n`);
      const { value, done } = await answers.next();
      if (done) throw new Error(`${command} ended`);
      const answer = JSON.parse(value) as Answer & { readonly error?: string };
      if (answer.error !== undefined) throw new Error(answer.error);
      return answer;
    },
    close() {
      child.stdin.end();
      return exited;
    },
  };
}

export async function openProcess(command: string, args: readonly string[], work: object): Promise<Session | string> {
  const start = performance.now();
  const { ask, close } = talkTo<{ milliseconds: number; values: number[]; peakBytes?: number }>(command, args);
  let costs: Costs | undefined;
  try {
    await ask({ command: "open", ...work });
  } catch (error) {
    await close();
    return (error as Error).message;
  }
  const opened = performance.now() - start;
  return {
    async run(steps) {
      const { milliseconds, peakBytes } = await ask({ command: "run", steps });
      if (peakBytes !== undefined) {
        const { firstStep, coldStart } = costs ?? { firstStep: milliseconds, coldStart: opened + milliseconds };
        costs = { firstStep, coldStart, peakBytes };
      }
      return milliseconds;
    },
    get costs() {
      return costs;
    },
    result: async (count) => (await ask({ command: "result", count })).values,
    close,
  };
}
