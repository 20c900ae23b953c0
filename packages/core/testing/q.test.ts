import { it } from "vitest";
import { opSweep } from "./sweep";
import { askTorch, expectAnswer } from "@opt/testkit";
const names = (process.env.Q ?? "").split(";");
const sweep = opSweep();
const calls = names.flatMap((n) => [...sweep[n]!]);
const answers = askTorch("/tmp/torch/bin/python", calls);
it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("%s", (_, call, answer) => expectAnswer(call, answer));
