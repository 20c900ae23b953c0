// The less common losses and similarities in random configurations against PyTorch: values, gradients and their gradients.
import { lossCalls, lossesAtEdges } from "../testing/calls/losses";
import { liveSuite } from "../testing/live-suite";

liveSuite([...lossCalls(200), ...lossesAtEdges]);
