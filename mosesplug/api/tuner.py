"""Ask and tell: tune with any decoder, in any language, on any cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from formats.nbest.block import NBestList
from formats.text import StrPath
from mosesplug.api.keywords import RUN, collect_keywords
from mosesplug.api.lists.sources import parse_lists
from mosesplug.api.progress import Progress
from mosesplug.api.requests import (
    Request,
    make_request,
    name_request,
    remove_request,
    sentences_path,
)
from mosesplug.api.run import Run, open_run, read_run
from mosesplug.api.run_files import place_references, place_start
from mosesplug.api.tune import follow
from mosesplug.decoders.asked import TextRequest
from mosesplug.decoders.batch import split_lists
from mosesplug.decoders.description import ASK
from mosesplug.decoders.lists.files import check_answer
from mosesplug.decoders.protocol import DecodedInput
from mosesplug.errors import UsageError
from mosesplug.events import Clock, Event
from mosesplug.settings.build import make_plan
from mosesplug.settings.defaults import fill_defaults
from mosesplug.settings.toml import overlay_settings, read_settings
from mosesplug.tuning.asking import (
    AskedRun,
    BatchRequest,
    TextWanted,
    ask_for_texts,
    raise_wanted,
)
from mosesplug.tuning.conclude import conclude
from mosesplug.tuning.context import Context
from mosesplug.tuning.loop import DecodingRequest, ask, tell
from mosesplug.tuning.repeated_lists import reject_repeated_lists
from mosesplug.tuning.resume import EarlierRun, has_earlier_run
from mosesplug.tuning.setup import check_outputs, prepare_run
from mosesplug.tuning.stopping import find_reason_to_stop
from mosesplug.tuning.workdir.iteration_files import result_path
from mosesplug.tuning.workdir.workspace import Workspace

_Asked = DecodingRequest | BatchRequest | TextRequest
_DEFAULT_NBEST = 100
_NEEDED = {"refs": "references", "config": "features and starting weights"}
"""Settings that a new run needs, in words."""


class Tuner:
    """A tuning run whose lists the caller decodes.

    Ask for a request, decode it, and tell the lists. With ``online=True``, requests are for
    mini-batches.

    The run is stored in its working directory as every run is, with the n-best lists of all
    iterations, the same files, and exact resume: after a kill, opening it again returns the request
    that was open, and the result has the same bytes. The directory is locked while a tuner is open;
    use it as a context manager, or call ``close``.

    Example:
        >>> import mosesplug
        >>> lists = mosesplug.read_nbest("run1.best100.out.gz")
        >>> with mosesplug.Tuner.open(
        ...     "told", references="dev.en", features=["LM0", "WordPenalty0"],
        ...     algorithm="kbmira", seed=1, max_iterations=2,
        ... ) as tuner:
        ...     while (request := tuner.ask()) is not None:
        ...         tuner.tell(request, lists)  # always the same lists here, instead of decoding
        ...     run = tuner.result
        >>> len(run.iterations), run.is_finished
        (2, True)
    """

    def __init__(
        self,
        stack: ExitStack,
        context: Context,
        batches: AskedRun | None,
        was_asked: bool,
        asked_before: Collection[Path],
    ) -> None:
        self._stack: ExitStack | None = stack
        self._context, self._batches = context, batches
        self._was_asked, self._asked_before = was_asked, asked_before
        self._directory = context.workspace.directory
        self._asked: tuple[_Asked, Request] | None = None
        self._reason = ""
        self._clock = Clock()

    @classmethod
    @RUN.in_messages()
    def open(
        cls,
        working_dir: StrPath,
        *,
        references: Any = None,
        features: Any = None,
        initial: Any = None,
        algorithm: str | None = None,
        options: Mapping[str, object] | None = None,
        metric: str | None = None,
        seed: int | None = None,
        overwrite: bool = False,
        watch: Callable[[Event], object] | None = None,
        progress: Progress = None,
        **more: Any,
    ) -> Tuner:
        """Begin a run, or continue the one in the directory.

        Args:
            working_dir: directory of all files of the run. If it holds a run of a tuner, that is
                continued: arguments that are not given are those it began with.
            references: a file or the prefix of several; or texts: one for each sentence, or several
                sequences of them.
            features: the dense features in the order of their columns: names (equal neighbors are
                one feature with several values), pairs of name and number of values, or a mapping
                of names to initial weights. Features of the lists that are not among them are
                sparse. None: those of ``initial``.
            initial: the starting weights: a mapping (without ``features``, a name with an
                underscore is a sparse feature), a vector, or a file of weights in any format that
                has names. None: 1 for each dense feature. They are divided by the sum of their
                absolute values, unless ``config_weights_first=True``.
            algorithm: its name, see ``mosesplug.algorithms``. Default: ``kbmira``.
            options: settings of the algorithm.
            metric: its name, or several with commas between. Default: ``BLEU``.
            seed: the seed of all random choices; drawn if it is not given, and kept.
            overwrite: replace an earlier run instead of continuing it.
            watch: called with each event, an object of ``mosesplug.events``.
            progress: None, True for a bar, or a function called with (done, total, what).
            more: other settings of ``mosesplug tune``, with underscores: ``online=True`` for
                mini-batches, ``nbest``, ``max_iterations``, ``min_change``, ``weights_format``,
                ``input`` (the source sentences; used for warnings only), ``active``, ``threads``,
                ... Those that need a decoder are not possible.

        Raises:
            UsageError: an argument is missing or cannot be used.
            DataError: another process uses the directory, or the run there had other references or
                features.
            StoreError: the store cannot be used, or belongs to another run.
            FormatError: a file cannot be read.
        """
        values_of_call = collect_keywords(
            {"algorithm": algorithm, "options": options, "metric": metric, "seed": seed, **more}
        )
        directory = Path(working_dir).absolute()
        with ExitStack() as stack:
            receive = stack.enter_context(follow(watch, progress))
            workspace = Workspace(directory, int(values_of_call.get("nbest", _DEFAULT_NBEST)))
            stack.enter_context(workspace.lock())
            if overwrite:
                workspace.remove_asked_texts()
            earlier: EarlierRun = "none"
            if has_earlier_run(workspace):
                earlier = "replaced" if overwrite else "continued"
            keep = earlier == "continued"
            # Preparing a run without lists removes its files; this one tells of an open request.
            was_asked = not keep and not overwrite and workspace.run(1, "dense").is_file()
            # Mini-batches and texts.
            asked_before = frozenset(directory.glob("*.ids"))
            values = _add_earlier(workspace, values_of_call, overwrite=overwrite)
            values["working-dir"] = str(directory)
            if references is not None:
                values["refs"] = place_references(references, workspace, keep=keep)
            if features is not None or initial is not None:
                values["config"] = place_start(features, initial, workspace, keep=keep)
            if missing := [what for name, what in _NEEDED.items() if name not in values]:
                raise UsageError(
                    f"{directory} holds no run yet: to begin one, give {', '.join(missing)}"
                )
            configuration = make_plan(fill_defaults(values)).configuration
            workspace = Workspace(directory, configuration.decoding.nbest)
            check_outputs(configuration, workspace)
            context = stack.enter_context(prepare_run(configuration, workspace, earlier, receive))
            context = ask_for_texts(context, raise_wanted)
            batches = None
            if configuration.online is not None:
                batches = AskedRun(context)
                stack.callback(batches.close)
            due = len(context.store.iterations()) + 1
            was_asked = was_asked or workspace.run(due, "dense").is_file()
            return cls(stack.pop_all(), context, batches, was_asked, asked_before)

    def ask(self) -> Request | None:
        """Return what must be decoded next; None if the run is finished.

        The same request is returned until its lists are told. At the end, the result is written
        into the working directory, and the directory is free for others.

        Raises:
            UsageError: the tuner is closed.
            OptimizerError: no usable weights can come of these lists.
            DataError: the run is strict, and there is a sign that it goes wrong.
        """
        if self._reason:
            return None
        context = self._open_context()
        if self._asked is None:
            request = self._find_request(context)
            if request is None:
                context.workspace.remove_asked_texts()
                self.close()
                return None
            self._asked = request, make_request(context, request)
            self._clock = Clock()
        return self._asked[1]

    def tell(self, request: Request, lists: Any, *, may_repeat: bool = True) -> None:
        """Score, store and learn from the lists of a request.

        If the lists cannot be used, nothing of them is stored, and the request is still open. If
        learning fails, they are stored: the next ``ask`` learns from them again.

        Args:
            request: the one that ``ask`` returned last.
            lists: the hypotheses of all sentences, best first; one of

                - an ``NBest``, or a mapping with its arguments (``sentence_ids``, ``hypotheses``,
                  ``features``, and possibly ``names``, ``scores``);
                - the path of an n-best file, in any format that the package reads; values without
                  labels are those of the features in their order;
                - an iterable of hypotheses: tuples of sentence id (from 0), text, and feature
                  values, which are a sequence in the order of the features, or a mapping.
            may_repeat: whether the lists may be those of an earlier iteration.

        Raises:
            UsageError: the request is not the open one, as it has been answered or is of another
                run; the lists may not repeat those of an earlier iteration, and do; or ``lists`` is
                something else.
            DataError: lists are missing, have other features, or values that are not finite; or the
                run is strict, and there is a sign that it goes wrong: then they are stored.
            FormatError: the file cannot be read.
            OptimizerError: no usable weights can come of these lists; they are stored.
        """
        context = self._open_context()
        if not isinstance(request, Request):
            raise UsageError("the first argument of tell is the request that ask returned")
        if self.ask() is None or self._asked is None:
            raise UsageError(f"the run in {self._directory} is finished: there is no open request")
        asked, own = self._asked
        if name_request(request) != name_request(own):
            raise UsageError(
                f"the request is for {name_request(request)}, but {name_request(own)}"
                " is open: a request takes lists only once. Ask again."
            )
        if dict(request.weights) != dict(own.weights):
            raise UsageError(
                f"the request of iteration {request.iteration} has other weights than the open one:"
                " it belongs to another run. Ask again."
            )
        space, references = context.space, context.references
        what, blocks = parse_lists(lists, space)
        workspace = context.workspace
        out, err = (workspace.run(own.iteration, suffix) for suffix in ("out", "decoder.err"))
        if isinstance(asked, TextRequest):
            asked.tell(check_answer(blocks, space.groups, len(asked.sentences), what))
            self._asked = None
            remove_request(own)
            if self._batches is not None:
                self._batches.tell(())
            return
        checked = check_answer(blocks, space.groups, references.n_sentences, what, own.sentences)
        if isinstance(asked, BatchRequest):
            self._tell_batch(asked, own, checked)
            return
        if not may_repeat:
            checked = reject_repeated_lists(checked, context.store, what)
        answer = DecodedInput(Path(what), (), out, err, self._clock.seconds(), lists=checked)
        try:
            tell(context, asked, answer)
        except TextWanted:  # the next request asks for it
            pass
        finally:
            if len(context.store.iterations()) >= asked.iteration:  # the lists are stored
                self._asked, self._was_asked = None, False

    def ask_again(self) -> Request | None:
        """Return the request that waits for its lists, also one of an earlier process.

        It is None if no request is open.

        Raises:
            UsageError, OptimizerError, DataError: as ``ask``.
        """
        if self._asked is not None:
            return self.ask()
        if not (self._was_asked or self._asked_before):
            return None
        context = self._open_context()
        waiting = self._find_request(context)
        if isinstance(waiting, DecodingRequest):
            return self.ask() if self._was_asked else None
        if waiting is None or sentences_path(context, waiting) not in self._asked_before:
            return None
        return self.ask()

    @property
    def is_finished(self) -> bool:
        """Whether the run is finished: ``ask`` returned None."""
        return bool(self._reason)

    @property
    def reason(self) -> str:
        """Why the run ended; empty until it has."""
        return self._reason

    @property
    def run(self) -> Run:
        """The run so far, to look at while the tuner is open, also in ``watch``.

        Use it in the thread that tells. It stays usable when the tuner is closed.

        Raises:
            DataError: the run has no finished iteration yet.
        """
        return read_run(self._directory, self._context.store)

    @property
    def result(self) -> Run:
        """The finished run.

        Raises:
            UsageError: it is not finished: ``ask`` has not returned None yet.
        """
        if not self._reason:
            raise UsageError("the run is not finished: ask until there is no request any more")
        return open_run(self._directory)

    @property
    def result_path(self) -> Path:
        """The file with the resulting weights, which is written when the run is finished."""
        return result_path(self._context.configuration, self._context.workspace)

    def close(self) -> None:
        """Release the directory; the run can be opened again. A second call does nothing."""
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.__exit__(kind, error, traceback)

    def __getstate__(self) -> object:
        raise TypeError("a Tuner holds its directory: pickle its run, or open it there")

    def __repr__(self) -> str:
        state = "finished" if self._reason else "closed" if self._stack is None else "open"
        return f"Tuner of {self._directory}, {state}"

    def _open_context(self) -> Context:
        if self._stack is None:
            state = "finished" if self._reason else "closed"
            raise UsageError(f"the tuner of {self._directory} is {state}")
        return self._context

    def _find_request(self, context: Context) -> _Asked | None:
        """Return what must be decoded next; None if the result is written."""
        try:
            if self._batches is None:
                request: _Asked | None = ask(context)
            else:
                request = None if find_reason_to_stop(context) else self._batches.ask()
            if request is None:
                self._reason = find_reason_to_stop(context)
                conclude(context, self._reason)
        except TextWanted as wanted:
            request = wanted.request
        except BaseException:
            self._reason = ""
            raise
        if request is not None:
            self._reason = ""
        return request

    def _tell_batch(self, asked: BatchRequest, own: Request, lists: Iterable[NBestList]) -> None:
        """Hand the lists of a mini-batch over, one for each sentence."""
        batches = self._batches
        if batches is None:
            raise UsageError("a run that is not online has no mini-batches")
        single = [part for block in lists for part in split_lists(block)]
        self._asked = None
        try:
            batches.tell(single)
        finally:
            # What remains is asked for again.
            open_lists = self._context.store.open_iteration()
            progress = {} if open_lists is None else open_lists.progress
            if open_lists is None or progress["batches"] >= asked.batch:
                remove_request(own)


def _add_earlier(
    workspace: Workspace, values_of_call: Mapping[str, Any], *, overwrite: bool
) -> dict[str, Any]:
    """Overlay settings on those of a tuner's earlier run in the directory."""
    values = {**values_of_call, "decoder": ASK}
    if overwrite or not workspace.settings.is_file():
        return values
    earlier = read_settings(workspace.settings)
    if earlier.get("decoder") != ASK:
        raise UsageError(
            f"{workspace.directory} holds a run with a decoder of its own: continue it with"
            " {--continue} of tune, replace it with {--overwrite}, or choose another directory"
        )
    return overlay_settings(earlier, values)
