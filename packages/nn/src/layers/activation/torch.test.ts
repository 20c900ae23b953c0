// Activations in random configurations against PyTorch: values, gradients and their gradients.
import { activationCalls, activationsAtEdges } from "../../testing/calls/activations";
import { liveSuite } from "../../testing/live-suite";

liveSuite([...activationCalls(200), ...activationsAtEdges]);
