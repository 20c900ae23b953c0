/** The page: what its controls do, and what it shows. */
import { drawChart } from "./chart";
import { type DigitFiles, digitsOf, fetchDigits, PIXELS } from "./digits";
import { Legend } from "./legend";
import { Pad } from "./pad";
import { button, complain, element, say, show, showProgress } from "./page";
import { Probabilities } from "./probabilities";
import type { DeviceChoice, Opened } from "./requests";
import { BATCH, labelOf, percent, type Settings, smoothed } from "./run";
import { Tiles } from "./tiles";
import { Training } from "./training";

const SHOWN = Int32Array.from({ length: 20 }, (_, i) => i);
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
const count = (number: number) => number.toLocaleString("en");

async function loadDigits(): Promise<[DigitFiles, DigitFiles]> {
  say("Loading the digits …");
  let [bytes, all] = [0, 0];
  const arrived = (more: number, expected: number) => {
    bytes += more;
    all += expected;
    showProgress(bytes / all);
  };
  const digits = await Promise.all([fetchDigits("train", arrived), fetchDigits("t10k", arrived)]);
  showProgress(undefined);
  return digits;
}

function fillChoices({ devices, rates }: Opened): void {
  const option = (value: string, label: string, missing = "") => {
    const made = new Option(label, value);
    Object.assign(made, { disabled: missing !== "", title: missing });
    return made;
  };
  element("device").replaceChildren(
    ...devices.map(({ name, reason }) => option(name, reason ? `${labelOf(name)} (not here)` : labelOf(name), reason)),
  );
  element("optimizer").replaceChildren(...Object.keys(rates).map((name) => option(name, name)));
}

/** What the fields say. @throws Error in words */
function settingsOfFields(): Settings {
  const optimizer = element<HTMLSelectElement>("optimizer").value;
  const field = element<HTMLInputElement>("lr");
  const lr = field.valueAsNumber;
  const fits = lr > 0 && lr <= 10;
  field.setAttribute("aria-invalid", String(!fits));
  if (!fits) throw new Error(`The learning rate must be a number above 0 and at most 10, got "${field.value}".`);
  return { optimizer, lr, device: element<HTMLSelectElement>("device").value };
}

function showSettings({ optimizer, lr, device }: Settings, devices: readonly DeviceChoice[]): void {
  element<HTMLSelectElement>("optimizer").value = optimizer;
  element<HTMLInputElement>("lr").value = String(lr);
  element("lr").setAttribute("aria-invalid", "false");
  element<HTMLSelectElement>("device").value = device;
  const detail = devices.find(({ name }) => name === device)?.detail;
  const missing = devices.filter(({ reason }) => reason !== undefined);
  const notes = missing.map(({ name }) => `This browser opens no ${labelOf(name)} here.`);
  show("note", [detail ? `${labelOf(device)}: ${detail}.` : "", ...notes].join(" ").trim());
}

async function start(): Promise<void> {
  const probabilities = new Probabilities(element("probabilities"));
  const [train, testFiles] = await loadDigits();
  say("Opening a device …");
  const training = new Training({ looked: look, failed });
  const wanted = new URLSearchParams(location.search).get("device") ?? undefined;
  const [test, opened] = await Promise.all([
    digitsOf(testFiles),
    training.ask({ ask: "open", train, test: testFiles, device: wanted }),
  ]);
  const { devices, rates } = opened;
  fillChoices(opened);
  show("tested", `of ${count(test.count)} test digits`);
  const first: Settings = { optimizer: "NAdam", lr: rates.NAdam!, device: opened.device };
  await training.begin(first);
  showSettings(first, devices);
  const tiles = new Tiles(element("digits"), test, SHOWN);
  const legend = new Legend(element("runs"), (run) => {
    training.remove(run);
    draw();
    element("again").focus();
  });
  const pad = new Pad(element<HTMLCanvasElement>("pad"), () => void judge().catch(complain));

  /** What the network thinks of the pad. While an answer is on its way, the next question waits for it. */
  let asking: Promise<void> | undefined;
  let askAgain = false;
  function judge(): Promise<void> {
    askAgain = true;
    asking ??= answer().finally(() => {
      asking = undefined;
    });
    return asking;
  }
  async function answer(): Promise<void> {
    while (askAgain) {
      askAgain = false;
      const image = pad.image();
      const likely = image && (await training.ask({ ask: "probabilities", image }));
      const best = probabilities.show(likely);
      const untrained = training.run.losses.length === 0 ? ", as a guess: it has not learned anything yet" : "";
      const sure = likely ? percent(likely[best]!) : "";
      show("answer", likely ? `It reads a ${best} (${sure})${untrained}.` : "Nothing drawn yet.");
    }
  }

  function draw(): void {
    const { runs, run } = training;
    const isEmpty = runs.every(({ losses }) => losses.length === 0);
    const loss = { label: "loss", log: true, ...(isEmpty && { range: [0.1, 3] as const }) };
    drawChart(element("loss-chart"), runs, "Training loss", loss, ({ losses }) => ({
      steps: losses.map((_, i) => i + 1),
      values: smoothed(losses),
    }));
    const share = { label: "read right", percent: true, range: [0, 1] as const };
    drawChart(element("accuracy-chart"), runs, "Accuracy on the test digits", share, ({ measured }) => ({
      steps: measured.map(({ step }) => step),
      values: measured.map(({ accuracy }) => accuracy),
    }));
    legend.show(runs, run);
  }

  async function look(): Promise<void> {
    const { run, speed } = training;
    tiles.show(run.losses.length > 0 ? await training.ask({ ask: "names", positions: SHOWN }) : undefined);
    show("step", count(run.losses.length));
    show("loss", run.losses.at(-1)?.toFixed(3) ?? "–");
    show("speed", speed > 0 ? count(Math.round(speed * BATCH)) : "–");
    const measured = run.measured.at(-1);
    show("accuracy", measured ? percent(measured.accuracy) : "–");
    draw();
    if (training.running) say(`Training on ${labelOf(run.device)} …`);
    await judge();
  }

  function failed(error: unknown): void {
    show("train", "Train");
    draw();
    say("Training has stopped.");
    complain(error);
  }

  const steps = () => count(training.run.losses.length);
  const saved = () => `${steps()} steps of run ${training.run.number + 1}`;

  async function pause(): Promise<void> {
    show("train", "Train");
    await training.pause();
  }

  /** Carries out what a control asks for, one thing at a time and while training rests, and says what went wrong. */
  let working = Promise.resolve();
  /** A press on Train that leaves a field with a wrong number does not train. */
  let isRefused = false;
  function whenUsed(id: string, action: () => Promise<string>, event = "click"): void {
    element(id).addEventListener(event, () => {
      working = working.then(async () => {
        try {
          await pause();
          say(await action());
        } catch (error) {
          say("That did not work.");
          complain(error);
          isRefused = true;
          showSettings(training.run, devices);
        }
      });
    });
  }

  async function load(from: Blob | "kept"): Promise<string> {
    await training.load(from, training.run.device);
    showSettings(training.run, devices);
    await look();
    return `Loaded: ${training.run.optimizer} after ${steps()} steps.`;
  }

  button("train").addEventListener("pointerdown", () => {
    isRefused = false;
  });
  button("train").addEventListener("click", ({ detail }) => {
    const isPressed = detail > 0; // not by a key
    working = working.then(async () => {
      if (isPressed && isRefused) return;
      if (training.running) {
        await pause();
        const { accuracy = 0 } = training.run.measured.at(-1) ?? {};
        say(`Paused after ${steps()} steps: ${percent(accuracy)} of the test digits.`);
        return;
      }
      show("train", "Pause");
      say(`Training on ${labelOf(training.run.device)} …`);
      training.start();
    });
  });
  const newRun = async () => {
    const settings = settingsOfFields();
    say(`Opening ${labelOf(settings.device)} …`);
    await training.begin(settings);
    showSettings(settings, devices);
    await look();
    return `Run ${training.run.number + 1} is ready: ${training.run.optimizer}, rate ${training.run.lr}, on ${labelOf(training.run.device)}.`;
  };
  whenUsed("again", newRun);
  whenUsed("device", newRun, "change");
  whenUsed("lr", newRun, "change");
  element("optimizer").addEventListener("change", () => {
    element<HTMLInputElement>("lr").value = String(rates[element<HTMLSelectElement>("optimizer").value]);
  });
  whenUsed("optimizer", newRun, "change");
  whenUsed("keep", async () => {
    say("Saving in this browser …");
    await training.ask({ ask: "keep" });
    return `Kept in this browser: ${saved()}.`;
  });
  whenUsed("restore", async () => {
    say("Looking for what is kept …");
    try {
      return await load("kept");
    } catch (error) {
      if ((error as { code?: string }).code === "MISSING") return "Nothing is kept in this browser yet.";
      throw error;
    }
  });
  whenUsed("download", async () => {
    say("Saving …");
    const file = await training.ask({ ask: "file" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = `digits-${training.run.losses.length}.safetensors`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    return `Saved as ${link.download}: ${saved()}, ${megabytes(file.size)}.`;
  });
  button("open").addEventListener("click", () => element<HTMLInputElement>("file").click());
  whenUsed(
    "file",
    async () => {
      const input = element<HTMLInputElement>("file");
      const file = input.files?.[0];
      input.value = "";
      if (file === undefined) return "No file was chosen.";
      say(`Reading ${file.name} …`);
      return load(file);
    },
    "change",
  );
  button("clear").addEventListener("click", () => pad.clear());
  button("sample").addEventListener("click", () => {
    const position = Math.floor(Math.random() * test.count);
    pad.place(test.pixels.subarray(position * PIXELS, (position + 1) * PIXELS));
  });
  new ResizeObserver(draw).observe(element("loss-chart"));

  await look();
  for (const id of ["optimizer", "device", "lr"]) element<HTMLInputElement>(id).disabled = false;
  for (const id of ["train", "again", "sample", "keep", "restore", "download", "open"]) button(id).disabled = false;
  say(`Ready to train on ${labelOf(opened.device)}.`);
}

start().catch((error: unknown) => {
  showProgress(undefined);
  say("This page cannot train.");
  complain(error);
});
