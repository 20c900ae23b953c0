/** The page: training runs between frames, and everything that it shows comes from the device. */
import { concat, type Tensor, tidy } from "@opt/core";
import { loadSession, readHeader, saveSession } from "./checkpoint";
import { chooseDevice } from "./device";
import { fetchDigits } from "./digits";
import { drawCurve, drawDigits } from "./drawing";
import { BATCH, type OptimizerName, Session } from "./session";
import { keepInBrowser, restoreFromBrowser } from "./storage";

/** Steps between two looks at the device: in between it runs ahead. */
const LOOK_EVERY = 10;
const SHOWN = Int32Array.from({ length: 20 }, (_, i) => i);

const element = <E extends HTMLElement>(id: string) => document.getElementById(id) as E;
const button = (id: string) => element<HTMLButtonElement>(id);
const show = (id: string, text: string) => {
  element(id).textContent = text;
};

/** The values of tensors of one element, in one read. */
async function readAll(scalars: readonly Tensor[]): Promise<number[]> {
  const together = tidy(() => concat(scalars.map((scalar) => scalar.reshape([1]))));
  for (const scalar of scalars) scalar.dispose();
  const values = await together.data();
  together.dispose();
  return [...values];
}

async function start(): Promise<void> {
  const wanted = new URLSearchParams(location.search).get("device");
  const { sentence } = await chooseDevice(wanted);
  show("device", sentence);
  const [training, test] = await Promise.all([fetchDigits("train"), fetchDigits("t10k")]);
  const chosen = () => element<HTMLSelectElement>("optimizer").value as OptimizerName;
  let session = new Session(training, chosen());
  let losses: number[] = [];
  let running = false;

  async function look(): Promise<void> {
    const names = await session.predict(test, SHOWN);
    drawDigits(element("digits"), test, SHOWN, names);
    const right = SHOWN.filter((position, i) => names[i] === test.labels[position]).length;
    show("accuracy", `${right} of ${SHOWN.length}`);
    show("step", String(session.steps));
    show("loss", losses.length === 0 ? "–" : losses.at(-1)!.toFixed(3));
    drawCurve(element<HTMLCanvasElement>("curve"), losses);
  }

  async function train(): Promise<void> {
    while (running) {
      const begin = performance.now();
      losses.push(...(await readAll(Array.from({ length: LOOK_EVERY }, () => session.step()))));
      show("speed", Math.round((LOOK_EVERY * BATCH * 1000) / (performance.now() - begin)).toLocaleString("en"));
      await look();
      await new Promise(requestAnimationFrame);
    }
  }

  let round = Promise.resolve();
  async function setRunning(value: boolean): Promise<void> {
    running = value;
    show("train", value ? "Pause" : "Train");
    if (value) round = train();
    else await round;
  }

  /** Runs what a button asks for while training rests, and says what went wrong. */
  const whenPressed = (id: string, action: () => Promise<string>, event = "click") => {
    element(id).addEventListener(event, async () => {
      try {
        await setRunning(false);
        show("message", await action());
      } catch (error) {
        show("message", error instanceof Error ? error.message : String(error));
      }
    });
  };

  function restart(optimizer: OptimizerName): void {
    session.dispose();
    element<HTMLSelectElement>("optimizer").value = optimizer;
    session = new Session(training, optimizer);
    losses = [];
  }

  async function load(file: ArrayBuffer): Promise<string> {
    restart(readHeader(file).header.__metadata__.optimizer);
    loadSession(session, file);
    await look();
    return `Loaded: ${session.optimizerName} after ${session.steps} steps.`;
  }

  button("train").addEventListener("click", () => setRunning(!running));
  whenPressed(
    "optimizer",
    async () => {
      restart(chosen());
      await look();
      return "";
    },
    "change",
  );
  whenPressed("download", async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await saveSession(session));
    link.download = `digits-${session.steps}.safetensors`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    return `Saved as ${link.download}.`;
  });
  whenPressed(
    "file",
    async () => {
      const input = element<HTMLInputElement>("file");
      const file = input.files?.[0];
      input.value = "";
      return file === undefined ? "" : load(await file.arrayBuffer());
    },
    "change",
  );
  whenPressed("keep", async () => {
    await keepInBrowser(await saveSession(session));
    return `Kept ${session.steps} steps in this browser.`;
  });
  whenPressed("restore", async () => {
    const file = await restoreFromBrowser();
    return file === undefined ? "Nothing is kept in this browser yet." : load(file);
  });
  await look();
  for (const id of ["train", "download", "keep", "restore"]) button(id).disabled = false;
}

start().catch((error) => show("device", error instanceof Error ? error.message : String(error)));
