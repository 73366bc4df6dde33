// The JavaScript side of the addon: it checks arguments and copies results, and computes nothing.

#include "javascript_values.hpp"

#include <pthread.h>

#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "evaluator.hpp"
#include "instructions.hpp"
#include "machine.hpp"
#include "model_tokenizer.hpp"

namespace {

using namespace tds::js;

using tds::BackendOptions;
using tds::Evaluator;
using tds::EvaluatorOptions;
using tds::ModelFacts;
using tds::ModelTokenizer;
using tds::Outcome;
using tds::Submission;
using tds::Task;
using tds::TextBatch;
using tds::TokenizerFacts;

struct Closed {};

/** An event for JavaScript: facts of a loaded model, a finished plan or batch of texts, or the end. */
using Event = std::variant<ModelFacts, TokenizerFacts, std::unique_ptr<Task>, std::unique_ptr<TextBatch>, Closed>;

/** An open evaluator or tokenizer, as JavaScript holds it. Other threads use `events` only. */
struct Instance {
    napi_threadsafe_function events = nullptr;
    /** One of the two is set, until it is closed. */
    std::unique_ptr<Evaluator> evaluator;
    std::unique_ptr<ModelTokenizer> tokenizer;
    bool is_loaded = false;
    int32_t vocabulary = 0;
    int32_t context_tokens = 0;
    /** Unfinished plans and batches of texts. */
    size_t pending = 0;
};

/** Reads a call's arguments, of which the first is an evaluator or a tokenizer. Returns null when one is missing. */
template <size_t Count>
Instance * arguments(napi_env env, napi_callback_info info, napi_value (&values)[Count]) {
    size_t count = Count;
    if (!check(env, napi_get_cb_info(env, info, &count, values, nullptr, nullptr))) return nullptr;
    void * data = nullptr;
    if (count < Count || napi_get_value_external(env, values[0], &data) != napi_ok || !data) {
        throw_error(env, "An argument is missing.");
        return nullptr;
    }
    return static_cast<Instance *>(data);
}

/** Does the same for calls whose second argument is the id of a plan or of texts. */
template <size_t Count>
Instance * arguments(napi_env env, napi_callback_info info, napi_value (&values)[Count], uint64_t & id) {
    Instance * instance = arguments(env, info, values);
    return instance && get_id(env, values[1], id) ? instance : nullptr;
}

/** Any thread. */
void send(Instance * instance, Event event) {
    auto sent = std::make_unique<Event>(std::move(event));
    if (napi_call_threadsafe_function(instance->events, sent.get(), napi_tsfn_nonblocking) == napi_ok) sent.release();
}

/** Waits for the instance's thread, which is idle or told to stop. */
void release(void * data) {
    auto * instance = static_cast<Instance *>(data);
    instance->evaluator.reset();
    instance->tokenizer.reset();
}

/** Counts an unfinished plan or batch. The process stays alive until all are done. */
void add_pending(napi_env env, Instance * instance) {
    if (instance->pending++ == 0) napi_ref_threadsafe_function(env, instance->events);
}

const char * outcome_name(const Task & task) {
    switch (task.outcome) {
        case Outcome::answered: return "answered";
        case Outcome::cancelled: return "cancelled";
        case Outcome::failed: return "failed";
    }
    return "failed";
}

const char * submission_name(Submission submission) {
    switch (submission) {
        case Submission::accepted: return "accepted";
        case Submission::overloaded: return "overloaded";
        case Submission::closed: return "closed";
    }
    return "closed";
}

/** Writes an event into the object that JavaScript is given. Returns false when a JavaScript exception is pending. */
struct EventWriter {
    napi_env env;
    Instance * instance;
    napi_value object;

    bool operator()(const ModelFacts & facts) const {
        if (!set_string(env, object, "kind", "loaded")) return false;
        if (!set_string(env, object, "missing_gpu", facts.missing_gpu)) return false;
        if (!facts.error.empty()) return set_string(env, object, "error", facts.error);
        instance->is_loaded = true;
        instance->vocabulary = facts.vocabulary;
        instance->context_tokens = facts.context_tokens;
        return set_string(env, object, "device", facts.device) &&
               set_number(env, object, "context_tokens", facts.context_tokens) &&
               set_number(env, object, "decoder_tokens", facts.decoder_tokens);
    }

    bool operator()(const TokenizerFacts & facts) const {
        if (!set_string(env, object, "kind", "loaded")) return false;
        if (!facts.error.empty()) return set_string(env, object, "error", facts.error);
        instance->is_loaded = true;
        return set_string(env, object, "tokenizer_model", facts.tokenizer_model) &&
               set_string(env, object, "pre_tokenizer", facts.pre_tokenizer);
    }

    bool operator()(const std::unique_ptr<Task> & task) const {
        if (!set_string(env, object, "kind", outcome_name(*task))) return false;
        if (!set_number(env, object, "id", static_cast<double>(task->id))) return false;
        if (task->outcome == Outcome::failed) return set_string(env, object, "error", task->message);
        if (task->outcome == Outcome::cancelled) return true;
        return set_array(env, object, "logits", napi_float32_array, task->logits);
    }

    bool operator()(const std::unique_ptr<TextBatch> & batch) const {
        if (!set_string(env, object, "kind", "tokenized")) return false;
        if (!set_number(env, object, "id", static_cast<double>(batch->id))) return false;
        if (!batch->error.empty()) return set_string(env, object, "error", batch->error);
        return set_array(env, object, "tokens", napi_int32_array, batch->tokens) &&
               set_array(env, object, "lengths", napi_int32_array, batch->lengths);
    }

    bool operator()(const Closed &) const { return set_string(env, object, "kind", "closed"); }
};

bool is_load(const Event & event) {
    return std::holds_alternative<ModelFacts>(event) || std::holds_alternative<TokenizerFacts>(event);
}

bool is_return(const Event & event) {
    return std::holds_alternative<std::unique_ptr<Task>>(event) ||
           std::holds_alternative<std::unique_ptr<TextBatch>>(event);
}

/** Runs on the JavaScript thread for each event that the addon's threads have sent. */
void on_event(napi_env env, napi_value callback, void * context, void * data) {
    std::unique_ptr<Event> event(static_cast<Event *>(data));
    auto * instance = static_cast<Instance *>(context);
    if (!env) return;
    if (is_return(*event)) instance->pending--;
    if (is_load(*event) || (is_return(*event) && instance->pending == 0)) {
        // An idle evaluator or tokenizer does not keep the process alive.
        napi_unref_threadsafe_function(env, instance->events);
    }
    napi_handle_scope scope;
    if (napi_open_handle_scope(env, &scope) != napi_ok) return;
    napi_value object, receiver, result;
    if (check(env, napi_create_object(env, &object)) && std::visit(EventWriter{env, instance, object}, *event) &&
        check(env, napi_get_undefined(env, &receiver))) {
        napi_call_function(env, receiver, callback, 1, &object, &result);
    }
    napi_close_handle_scope(env, scope);
    if (std::holds_alternative<Closed>(*event)) {
        napi_remove_env_cleanup_hook(env, release, instance);
        release(instance);
        napi_release_threadsafe_function(instance->events, napi_tsfn_release);
    }
}

bool get_backends(napi_env env, napi_value object, BackendOptions & options) {
    return get_string_property(env, object, "library_directory", options.directory) &&
           get_string_property(env, object, "fallback_directory", options.fallback_directory) &&
           get_string_property(env, object, "gpu", options.gpu);
}

/** inspect(options): the machine's devices and kernels. */
napi_value inspect(napi_env env, napi_callback_info info) {
    napi_value values[1];
    size_t count = 1;
    BackendOptions options;
    if (!check(env, napi_get_cb_info(env, info, &count, values, nullptr, nullptr)) ||
        !get_backends(env, values[0], options)) {
        return nullptr;
    }
    const tds::MachineFacts facts = tds::inspect_machine(options);
    napi_value object;
    if (!check(env, napi_create_object(env, &object)) || !set_string(env, object, "device", facts.device) ||
        !set_string(env, object, "description", facts.description) ||
        !set_string(env, object, "missing_gpu", facts.missing_gpu) ||
        !set_string(env, object, "kernels", tds::instructions_name(facts.kernels)) ||
        !set_boolean(env, object, "uses_amx", facts.uses_amx)) {
        return nullptr;
    }
    return object;
}

/** Throws std::system_error when its thread cannot be started. */
void start_evaluator(Instance * shared, EvaluatorOptions options) {
    shared->evaluator = std::make_unique<Evaluator>(
        std::move(options), [shared](const ModelFacts & facts) { send(shared, facts); },
        [shared](std::unique_ptr<Task> task) { send(shared, std::move(task)); }, [shared] { send(shared, Closed{}); });
}

/** Throws std::system_error when its thread cannot be started. */
void start_tokenizer(Instance * shared, BackendOptions backends, std::string model_path) {
    shared->tokenizer = std::make_unique<ModelTokenizer>(
        std::move(backends), std::move(model_path), [shared](const TokenizerFacts & facts) { send(shared, facts); },
        [shared](std::unique_ptr<TextBatch> batch) { send(shared, std::move(batch)); },
        [shared] { send(shared, Closed{}); });
}

/**
 * Creates an instance for JavaScript, starts it by `start`, and sends its events to `on_event_callback`. Returns null
 * when a JavaScript exception is pending. Throws what `start` throws.
 */
template <typename Start>
napi_value create_instance(napi_env env, const char * resource, napi_value on_event_callback, Start start) {
    auto instance = std::make_unique<Instance>();
    Instance * shared = instance.get();
    napi_value name, external;
    if (!check(env, napi_create_string_utf8(env, resource, NAPI_AUTO_LENGTH, &name)) ||
        !check(env, napi_create_external(
                        env, shared, [](napi_env, void * data, void *) { delete static_cast<Instance *>(data); }, nullptr,
                        &external))) {
        return nullptr;
    }
    instance.release();
    if (!check(env, napi_create_threadsafe_function(env, on_event_callback, nullptr, name, 0, 1, nullptr, nullptr, shared,
                                                    on_event, &shared->events)) ||
        !check(env, napi_add_env_cleanup_hook(env, release, shared))) {
        return nullptr;
    }
    try {
        start(shared);
    } catch (...) {
        // No thread has started that could send an event.
        napi_remove_env_cleanup_hook(env, release, shared);
        napi_release_threadsafe_function(shared->events, napi_tsfn_abort);
        throw;
    }
    return external;
}

/** Reads the arguments of an opening call: options and the event callback. Returns false when one is missing. */
bool opening_arguments(napi_env env, napi_callback_info info, napi_value (&values)[2]) {
    size_t count = 2;
    if (!check(env, napi_get_cb_info(env, info, &count, values, nullptr, nullptr))) return false;
    if (count < 2) throw_error(env, "An argument is missing.");
    return count >= 2;
}

/** The options of `open`. Returns false when a JavaScript exception is pending. */
bool get_options(napi_env env, napi_value object, EvaluatorOptions & options) {
    tds::ModelOptions & model = options.model;
    int32_t queue_limit = 0;
    double prefix_cache_bytes = 0;
    std::string kernels;
    if (!get_backends(env, object, model.backends) ||
        !get_string_property(env, object, "model_path", model.model_path) ||
        !get_boolean_property(env, object, "require_gpu", model.require_gpu) ||
        !get_integer_property(env, object, "fewest_threads", model.threads.fewest) ||
        !get_integer_property(env, object, "most_threads", model.threads.most) ||
        !get_string_property(env, object, "cpu_times", model.threads.cpu_times) ||
        !get_integer_property(env, object, "context_tokens", model.context_tokens) ||
        !get_integer_property(env, object, "queue_limit", queue_limit) ||
        !get_number_property(env, object, "prefix_cache_bytes", prefix_cache_bytes) ||
        !get_boolean_property(env, object, "full_decodes", model.full_decodes) ||
        !get_boolean_property(env, object, "deterministic", model.deterministic) ||
        !get_string_property(env, object, "kernels", kernels) ||
        !get_integer_property(env, object, "fault_token", model.fault_token) ||
        !get_integer_property(env, object, "read_fault_token", model.read_fault_token)) {
        return false;
    }
    constexpr int32_t most_tokens = 1 << 22;
    constexpr double most_bytes = 1ull << 50;
    const tds::ThreadOptions & threads = model.threads;
    if (threads.fewest < 1 || threads.most < threads.fewest || threads.most > GGML_MAX_N_THREADS ||
        model.context_tokens < 1 || model.context_tokens > most_tokens || queue_limit < 0 ||
        !(prefix_cache_bytes >= 0 && prefix_cache_bytes <= most_bytes) ||
        !tds::instructions_of(kernels, model.kernels) || !tds::has_instructions(model.kernels)) {
        throw_error(env, "An option is out of range.");
        return false;
    }
#if defined(__linux__)
    clockid_t event_loop = 0;
    if (pthread_getcpuclockid(pthread_self(), &event_loop) == 0) model.threads.event_loop = event_loop;
#endif
    options.queue_limit = static_cast<size_t>(queue_limit);
    model.prefix_cache_bytes = static_cast<size_t>(prefix_cache_bytes);
    return true;
}

/** open(options, onEvent): an evaluator, which sends `loaded` next. */
napi_value open_evaluator(napi_env env, napi_callback_info info) {
    napi_value values[2];
    EvaluatorOptions options;
    if (!opening_arguments(env, info, values) || !get_options(env, values[0], options)) return nullptr;
    return create_instance(env, "tds evaluator", values[1],
                           [&](Instance * shared) { start_evaluator(shared, std::move(options)); });
}

/** openTokenizer(options, onEvent): the tokenizer of a model file, which sends `loaded` next. */
napi_value open_tokenizer(napi_env env, napi_callback_info info) {
    napi_value values[2];
    BackendOptions backends;
    std::string model_path;
    if (!opening_arguments(env, info, values) || !get_backends(env, values[0], backends) ||
        !get_string_property(env, values[0], "model_path", model_path)) {
        return nullptr;
    }
    return create_instance(env, "tds tokenizer", values[1], [&](Instance * shared) {
        start_tokenizer(shared, std::move(backends), std::move(model_path));
    });
}

/** Reads a packed plan. Returns false when it is malformed, and a JavaScript exception is pending. */
bool get_plan(napi_env env, napi_value value, const Instance & instance, tds::Plan & plan) {
    const int32_t * packed = nullptr;
    size_t length = 0;
    if (!get_numbers(env, value, packed, length)) return false;
    const std::string fault = tds::unpack_plan(packed, length, instance.vocabulary, instance.context_tokens, plan);
    if (!fault.empty()) throw_error(env, fault.c_str());
    return fault.empty();
}

/** Returns a text for JavaScript; null when a JavaScript exception is pending. */
napi_value text_of(napi_env env, const char * text) {
    napi_value value;
    return check(env, napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value)) ? value : nullptr;
}

/** decoderOf(evaluator, packed plan): "small" or "large". Throws on a malformed plan. */
napi_value decoder_of(napi_env env, napi_callback_info info) {
    napi_value values[2];
    Instance * instance = arguments(env, info, values);
    if (!instance) return nullptr;
    size_t decoder = 0;
    if (instance->evaluator && instance->is_loaded) {
        tds::Plan plan;
        if (!get_plan(env, values[1], *instance, plan)) return nullptr;
        decoder = instance->evaluator->decoder_of(plan);
    }
    return text_of(env, decoder == 0 ? "small" : "large");
}

/** submit(evaluator, id, scope, packed plan): "accepted", "overloaded" or "closed". Throws on a malformed plan. */
napi_value submit(napi_env env, napi_callback_info info) {
    napi_value values[4];
    auto task = std::make_unique<Task>();
    Instance * instance = arguments(env, info, values, task->id);
    if (!instance || !get_string(env, values[2], task->scope)) return nullptr;
    Submission submission = Submission::closed;
    if (instance->evaluator && instance->is_loaded) {
        if (!get_plan(env, values[3], *instance, task->plan)) return nullptr;
        submission = instance->evaluator->submit(std::move(task));
    }
    if (submission == Submission::accepted) add_pending(env, instance);
    return text_of(env, submission_name(submission));
}

/** cancel(evaluator, id) */
napi_value cancel(napi_env env, napi_callback_info info) {
    napi_value values[2];
    uint64_t id = 0;
    Instance * instance = arguments(env, info, values, id);
    if (instance && instance->evaluator) instance->evaluator->cancel(id);
    return nullptr;
}

/** tokenizeAll(tokenizer, id, texts): `tokenized` follows. Throws when the model has been closed. */
napi_value tokenize_all(napi_env env, napi_callback_info info) {
    napi_value values[3];
    auto batch = std::make_unique<TextBatch>();
    Instance * instance = arguments(env, info, values, batch->id);
    uint32_t count = 0;
    if (!instance || !check(env, napi_get_array_length(env, values[2], &count))) return nullptr;
    batch->texts.resize(count);
    for (uint32_t i = 0; i < count; i++) {
        napi_value text;
        if (!check(env, napi_get_element(env, values[2], i, &text)) || !get_string(env, text, batch->texts[i])) {
            return nullptr;
        }
    }
    if (!instance->tokenizer || !instance->is_loaded || !instance->tokenizer->tokenize_all(std::move(batch))) {
        throw_error(env, "The model has been closed.");
        return nullptr;
    }
    add_pending(env, instance);
    return nullptr;
}

/** stats(evaluator): what it has done, as an object of numbers; batches by size as an array. */
napi_value stats(napi_env env, napi_callback_info info) {
    napi_value values[1];
    Instance * instance = arguments(env, info, values);
    napi_value object;
    if (!instance || !check(env, napi_create_object(env, &object))) return nullptr;
    if (!instance->evaluator) {
        throw_error(env, "The model has been closed.");
        return nullptr;
    }
    const tds::Counters & counters = instance->evaluator->counters();
    const auto number = [](uint64_t count) { return static_cast<double>(count); };
    const std::vector<double> batches(counters.batches.begin(), counters.batches.end());
    if (!set_number(env, object, "decodes", number(counters.decodes)) ||
        !set_number(env, object, "threads", number(counters.threads)) ||
        !set_number(env, object, "decoded_tokens", number(counters.decoded_tokens)) ||
        !set_number(env, object, "padding_tokens", number(counters.padding_tokens)) ||
        !set_number(env, object, "reused_tokens", number(counters.reused_tokens)) ||
        !set_number(env, object, "kept_prefix_bytes", number(counters.kept_prefix_bytes)) ||
        !set_number(env, object, "kv_cache_bytes", number(counters.kv_cache_bytes)) ||
        !set_number(env, object, "batched_tokens", number(counters.batched_tokens)) ||
        !set_array(env, object, "batches", napi_float64_array, batches) ||
        !set_number(env, object, "waiting_plans", number(instance->evaluator->waiting()))) {
        return nullptr;
    }
    return object;
}

/** close(evaluator or tokenizer): `closed` follows when all is freed. */
napi_value close_instance(napi_env env, napi_callback_info info) {
    napi_value values[1];
    Instance * instance = arguments(env, info, values);
    if (!instance || (!instance->evaluator && !instance->tokenizer)) return nullptr;
    instance->is_loaded = false;
    napi_ref_threadsafe_function(env, instance->events);
    if (instance->evaluator) instance->evaluator->close();
    if (instance->tokenizer) instance->tokenizer->close();
    return nullptr;
}

/** Calls a function for JavaScript. C++ exceptions become JavaScript errors, because none may cross the boundary. */
template <napi_callback Function>
napi_value guarded(napi_env env, napi_callback_info info) {
    try {
        return Function(env, info);
    } catch (const std::bad_alloc &) {
        throw_error(env, "There is not enough memory.");
    } catch (const std::system_error &) {
        throw_error(env, "The system starts no more threads.");
    } catch (const std::exception & error) {
        throw_error(env, error.what());
    }
    return nullptr;
}

napi_value initialize(napi_env env, napi_value exports) {
    const napi_property_descriptor functions[] = {
        {"inspect", nullptr, guarded<inspect>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"open", nullptr, guarded<open_evaluator>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"decoderOf", nullptr, guarded<decoder_of>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"submit", nullptr, guarded<submit>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"cancel", nullptr, guarded<cancel>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"openTokenizer", nullptr, guarded<open_tokenizer>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"tokenizeAll", nullptr, guarded<tokenize_all>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"stats", nullptr, guarded<stats>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"close", nullptr, guarded<close_instance>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
    };
    napi_define_properties(env, exports, sizeof(functions) / sizeof(functions[0]), functions);
    return exports;
}

}  // namespace

NAPI_MODULE(tds_addon, initialize)
