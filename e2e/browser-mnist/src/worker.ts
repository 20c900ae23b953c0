/** The page's worker: trains, measures and predicts. */
import { init } from "@opt/core";
import { type ExposedRun, expose } from "@opt/train/worker";
import { deviceChoices } from "./device";
import { type Digits, digitsOf } from "./digits";
import { OPTIMIZERS } from "./optimizers";
import type { Opened, Request } from "./requests";
import { Session } from "./session";

let digits: [train: Digits, test: Digits];
let session: Session | undefined;

expose((run: ExposedRun, request: Request) => {
  if (request.ask === "open") return open(request);
  if (request.ask === "begin") return begin(request);
  if (request.ask === "train") return session!.train(run);
  if (request.ask === "names") return session!.names(request.positions);
  if (request.ask === "probabilities") return session!.probabilities(request.image);
  if (request.ask === "file") return session!.file();
  return session!.keep();
});

async function open({ train, test, device }: Request & { ask: "open" }): Promise<Opened> {
  digits = await Promise.all([digitsOf(train), digitsOf(test)]);
  const devices = await deviceChoices();
  const { name } = await init(device);
  const rates = Object.fromEntries(Object.entries(OPTIMIZERS).map(([optimizer, { lr }]) => [optimizer, lr]));
  return { device: name, devices, rates };
}

/** The session before stays where the new one fails. */
async function begin(request: Request & { ask: "begin" }) {
  const device = "from" in request ? request.device : request.settings.device;
  await init(device);
  const [next, begun] = await ("from" in request
    ? Session.open(...digits, request.from, device)
    : Session.begin(...digits, request.settings));
  session?.dispose();
  session = next;
  return begun;
}
