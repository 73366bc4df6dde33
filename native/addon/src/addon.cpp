// The JavaScript side of the engine: what comes in is checked, what goes out is copied, nothing is computed here.

#define NAPI_VERSION 8
#include <node_api.h>

#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "engine.hpp"
#include "model_tokenizer.hpp"

namespace {

using tds::BackendOptions;
using tds::Batch;
using tds::Engine;
using tds::EngineFacts;
using tds::EngineOptions;
using tds::ModelTokenizer;
using tds::Outcome;
using tds::Submission;
using tds::Task;
using tds::TokenizerFacts;

enum class EventKind { loaded, done, tokenized, closed };

struct Event {
    EventKind kind;
    /** Of what was loaded: an engine, or a tokenizer. */
    EngineFacts facts;
    TokenizerFacts tokenizer_facts;
    std::unique_ptr<Task> task;
    std::unique_ptr<Batch> batch;
};

/** An open engine or tokenizer, as JavaScript holds it. All but the events are touched by the JavaScript thread only. */
struct Instance {
    napi_threadsafe_function events = nullptr;
    /** One of the two, until it is closed. */
    std::unique_ptr<Engine> engine;
    std::unique_ptr<ModelTokenizer> tokenizer;
    bool is_loaded = false;
    int32_t vocabulary = 0;
    int32_t context_tokens = 0;
    /** Plans and batches that have not come back. */
    size_t pending = 0;
};

void throw_error(napi_env env, const char * message) { napi_throw_error(env, nullptr, message); }

/** Whether a call went well; otherwise a JavaScript exception is pending. */
bool check(napi_env env, napi_status status) {
    if (status == napi_ok) return true;
    bool is_pending = false;
    napi_is_exception_pending(env, &is_pending);
    if (!is_pending) throw_error(env, "An argument has the wrong type.");
    return false;
}

bool get_string(napi_env env, napi_value value, std::string & text) {
    size_t length = 0;
    if (!check(env, napi_get_value_string_utf8(env, value, nullptr, 0, &length))) return false;
    text.resize(length + 1);
    if (!check(env, napi_get_value_string_utf8(env, value, text.data(), length + 1, &length))) return false;
    text.resize(length);
    return true;
}

bool get_property(napi_env env, napi_value object, const char * name, napi_value & value) {
    return check(env, napi_get_named_property(env, object, name, &value));
}

bool get_string_property(napi_env env, napi_value object, const char * name, std::string & text) {
    napi_value value;
    return get_property(env, object, name, value) && get_string(env, value, text);
}

bool get_integer_property(napi_env env, napi_value object, const char * name, int32_t & number) {
    napi_value value;
    return get_property(env, object, name, value) && check(env, napi_get_value_int32(env, value, &number));
}

bool get_number_property(napi_env env, napi_value object, const char * name, double & number) {
    napi_value value;
    return get_property(env, object, name, value) && check(env, napi_get_value_double(env, value, &number));
}

bool get_boolean_property(napi_env env, napi_value object, const char * name, bool & flag) {
    napi_value value;
    return get_property(env, object, name, value) && check(env, napi_get_value_bool(env, value, &flag));
}

/** An Int32Array. */
bool get_numbers(napi_env env, napi_value array, const int32_t *& numbers, size_t & count) {
    napi_typedarray_type type;
    void * data = nullptr;
    if (!check(env, napi_get_typedarray_info(env, array, &type, &count, &data, nullptr, nullptr))) return false;
    if (type != napi_int32_array) {
        throw_error(env, "An argument has the wrong type.");
        return false;
    }
    numbers = static_cast<const int32_t *>(data);
    return true;
}

/** What a plan or a batch is known by. */
bool get_id(napi_env env, napi_value value, uint64_t & id) {
    double number = 0;
    if (!check(env, napi_get_value_double(env, value, &number))) return false;
    if (!(number >= 0)) {
        throw_error(env, "An argument has the wrong type.");
        return false;
    }
    id = static_cast<uint64_t>(number);
    return true;
}

bool set_number(napi_env env, napi_value object, const char * name, double number) {
    napi_value value;
    return check(env, napi_create_double(env, number, &value)) &&
           check(env, napi_set_named_property(env, object, name, value));
}

bool set_boolean(napi_env env, napi_value object, const char * name, bool flag) {
    napi_value value;
    return check(env, napi_get_boolean(env, flag, &value)) &&
           check(env, napi_set_named_property(env, object, name, value));
}

bool set_string(napi_env env, napi_value object, const char * name, const std::string & text) {
    napi_value value;
    return check(env, napi_create_string_utf8(env, text.data(), text.size(), &value)) &&
           check(env, napi_set_named_property(env, object, name, value));
}

/** A typed array with a copy of the data. */
template <typename Number>
bool create_array(napi_env env, napi_typedarray_type type, const std::vector<Number> & data, napi_value & array) {
    void * memory = nullptr;
    napi_value buffer;
    if (!check(env, napi_create_arraybuffer(env, data.size() * sizeof(Number), &memory, &buffer))) return false;
    std::copy(data.begin(), data.end(), static_cast<Number *>(memory));
    return check(env, napi_create_typedarray(env, type, data.size(), buffer, 0, &array));
}

template <typename Number>
bool set_array(napi_env env, napi_value object, const char * name, napi_typedarray_type type,
               const std::vector<Number> & data) {
    napi_value array;
    return create_array(env, type, data, array) && check(env, napi_set_named_property(env, object, name, array));
}

/** The arguments of a call, the first of which is an engine or a tokenizer. */
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

void send(Instance * instance, std::unique_ptr<Event> event) {
    Event * sent = event.release();
    if (napi_call_threadsafe_function(instance->events, sent, napi_tsfn_nonblocking) != napi_ok) delete sent;
}

/** Waits for the instance's own thread, which has nothing left to do or is told to stop. */
void release(void * data) {
    auto * instance = static_cast<Instance *>(data);
    instance->engine.reset();
    instance->tokenizer.reset();
}

const char * outcome_name(const Task & task) {
    switch (task.outcome) {
        case Outcome::answered: return "answered";
        case Outcome::cancelled: return "cancelled";
        case Outcome::failed: return "failed";
    }
    return "failed";
}

bool describe_tokenizer(napi_env env, Instance * instance, const TokenizerFacts & facts, napi_value object) {
    if (!facts.error.empty()) return set_string(env, object, "error", facts.error);
    instance->is_loaded = true;
    return set_string(env, object, "tokenizer_model", facts.tokenizer_model) &&
           set_string(env, object, "pre_tokenizer", facts.pre_tokenizer);
}

bool describe(napi_env env, Instance * instance, const Event & event, napi_value object) {
    switch (event.kind) {
        case EventKind::loaded:
            if (!set_string(env, object, "kind", "loaded")) return false;
            if (instance->tokenizer) return describe_tokenizer(env, instance, event.tokenizer_facts, object);
            if (!set_string(env, object, "missing_gpu", event.facts.missing_gpu)) return false;
            if (!event.facts.error.empty()) return set_string(env, object, "error", event.facts.error);
            instance->is_loaded = true;
            instance->vocabulary = event.facts.vocabulary;
            instance->context_tokens = event.facts.context_tokens;
            return set_string(env, object, "device", event.facts.device) &&
                   set_number(env, object, "context_tokens", event.facts.context_tokens);
        case EventKind::done: {
            const Task & task = *event.task;
            if (!set_string(env, object, "kind", outcome_name(task))) return false;
            if (!set_number(env, object, "id", static_cast<double>(task.id))) return false;
            if (task.outcome == Outcome::failed) return set_string(env, object, "error", task.message);
            if (task.outcome == Outcome::cancelled) return true;
            return set_array(env, object, "logits", napi_float32_array, task.logits);
        }
        case EventKind::tokenized: {
            const Batch & batch = *event.batch;
            if (!set_string(env, object, "kind", "tokenized")) return false;
            if (!set_number(env, object, "id", static_cast<double>(batch.id))) return false;
            if (!batch.error.empty()) return set_string(env, object, "error", batch.error);
            return set_array(env, object, "tokens", napi_int32_array, batch.tokens) &&
                   set_array(env, object, "lengths", napi_int32_array, batch.lengths);
        }
        case EventKind::closed:
            return set_string(env, object, "kind", "closed");
    }
    return false;
}

/** Runs on the JavaScript thread for each event that the engine's threads have sent. */
void on_event(napi_env env, napi_value callback, void * context, void * data) {
    std::unique_ptr<Event> event(static_cast<Event *>(data));
    auto * instance = static_cast<Instance *>(context);
    if (!env) return;
    const bool is_return = event->kind == EventKind::done || event->kind == EventKind::tokenized;
    if (is_return) instance->pending--;
    if (event->kind == EventKind::loaded || (is_return && instance->pending == 0)) {
        // What is loaded and has nothing to do does not keep the process alive.
        napi_unref_threadsafe_function(env, instance->events);
    }
    napi_handle_scope scope;
    if (napi_open_handle_scope(env, &scope) != napi_ok) return;
    napi_value object, receiver, result;
    if (check(env, napi_create_object(env, &object)) && describe(env, instance, *event, object) &&
        check(env, napi_get_undefined(env, &receiver))) {
        napi_call_function(env, receiver, callback, 1, &object, &result);
    }
    napi_close_handle_scope(env, scope);
    if (event->kind == EventKind::closed) {
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

/** inspect(options): what the machine has. */
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
        !set_boolean(env, object, "has_own_kernels", facts.has_own_kernels) ||
        !set_boolean(env, object, "uses_amx", facts.uses_amx)) {
        return nullptr;
    }
    return object;
}

/** Throws std::system_error when its thread cannot be started. */
void start_engine(Instance * shared, EngineOptions options) {
    shared->engine = std::make_unique<Engine>(
        std::move(options),
        [shared](const EngineFacts & facts) {
            send(shared, std::unique_ptr<Event>(new Event{EventKind::loaded, facts, {}, nullptr, nullptr}));
        },
        [shared](std::unique_ptr<Task> task) {
            send(shared, std::unique_ptr<Event>(new Event{EventKind::done, {}, {}, std::move(task), nullptr}));
        },
        [shared] { send(shared, std::unique_ptr<Event>(new Event{EventKind::closed, {}, {}, nullptr, nullptr})); });
}

/** Throws std::system_error when its thread cannot be started. */
void start_tokenizer(Instance * shared, BackendOptions backends, std::string model_path) {
    shared->tokenizer = std::make_unique<ModelTokenizer>(
        std::move(backends), std::move(model_path),
        [shared](const TokenizerFacts & facts) {
            send(shared, std::unique_ptr<Event>(new Event{EventKind::loaded, {}, facts, nullptr, nullptr}));
        },
        [shared](std::unique_ptr<Batch> batch) {
            send(shared, std::unique_ptr<Event>(new Event{EventKind::tokenized, {}, {}, nullptr, std::move(batch)}));
        },
        [shared] { send(shared, std::unique_ptr<Event>(new Event{EventKind::closed, {}, {}, nullptr, nullptr})); });
}

/**
 * A new instance for JavaScript, whose events go to `on_event_callback` once `start` has started it. Null when a
 * JavaScript exception is pending; throws what `start` throws.
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
        // Nothing has started that would send an event.
        napi_remove_env_cleanup_hook(env, release, shared);
        napi_release_threadsafe_function(shared->events, napi_tsfn_abort);
        throw;
    }
    return external;
}

/** open(options, onEvent): the engine, which sends `loaded` next. */
napi_value open_engine(napi_env env, napi_callback_info info) {
    napi_value values[2];
    size_t count = 2;
    if (!check(env, napi_get_cb_info(env, info, &count, values, nullptr, nullptr))) return nullptr;
    if (count < 2) {
        throw_error(env, "An argument is missing.");
        return nullptr;
    }
    EngineOptions options;
    int32_t queue_limit = 0;
    double prefix_cache_bytes = 0;
    if (!get_backends(env, values[0], options.backends) ||
        !get_string_property(env, values[0], "model_path", options.model_path) ||
        !get_boolean_property(env, values[0], "require_gpu", options.require_gpu) ||
        !get_integer_property(env, values[0], "threads", options.threads) ||
        !get_integer_property(env, values[0], "context_tokens", options.context_tokens) ||
        !get_integer_property(env, values[0], "queue_limit", queue_limit) ||
        !get_number_property(env, values[0], "prefix_cache_bytes", prefix_cache_bytes) ||
        !get_boolean_property(env, values[0], "full_decodes", options.full_decodes) ||
        !get_boolean_property(env, values[0], "deterministic", options.deterministic) ||
        !get_boolean_property(env, values[0], "own_kernels", options.own_kernels) ||
        !get_integer_property(env, values[0], "fault_token", options.fault_token) ||
        !get_integer_property(env, values[0], "read_fault_token", options.read_fault_token)) {
        return nullptr;
    }
    constexpr int32_t most_tokens = 1 << 22;
    constexpr double most_bytes = 1ull << 50;
    if (options.threads < 1 || options.threads > GGML_MAX_N_THREADS || options.context_tokens < 1 ||
        options.context_tokens > most_tokens || queue_limit < 0 ||
        !(prefix_cache_bytes >= 0 && prefix_cache_bytes <= most_bytes)) {
        throw_error(env, "An option is out of range.");
        return nullptr;
    }
    options.queue_limit = static_cast<size_t>(queue_limit);
    options.prefix_cache_bytes = static_cast<size_t>(prefix_cache_bytes);

    return create_instance(env, "tds engine", values[1],
                           [&](Instance * shared) { start_engine(shared, std::move(options)); });
}

/** openTokenizer(options, onEvent): the tokenizer of a model file, which sends `loaded` next. */
napi_value open_tokenizer(napi_env env, napi_callback_info info) {
    napi_value values[2];
    size_t count = 2;
    if (!check(env, napi_get_cb_info(env, info, &count, values, nullptr, nullptr))) return nullptr;
    if (count < 2) {
        throw_error(env, "An argument is missing.");
        return nullptr;
    }
    BackendOptions backends;
    std::string model_path;
    if (!get_backends(env, values[0], backends) || !get_string_property(env, values[0], "model_path", model_path)) {
        return nullptr;
    }
    return create_instance(env, "tds tokenizer", values[1], [&](Instance * shared) {
        start_tokenizer(shared, std::move(backends), std::move(model_path));
    });
}

/** submit(engine, id, scope, packed plan): "accepted", "overloaded" or "closed". Throws when the plan is malformed. */
napi_value submit(napi_env env, napi_callback_info info) {
    napi_value values[4];
    Instance * instance = arguments(env, info, values);
    if (!instance) return nullptr;
    auto task = std::make_unique<Task>();
    const int32_t * packed = nullptr;
    size_t length = 0;
    if (!get_id(env, values[1], task->id) || !get_string(env, values[2], task->scope) ||
        !get_numbers(env, values[3], packed, length)) {
        return nullptr;
    }

    Submission submission = Submission::closed;
    if (instance->engine && instance->is_loaded) {
        const std::string fault = tds::unpack_plan(packed, length, instance->vocabulary,
                                                   instance->context_tokens, task->plan);
        if (!fault.empty()) {
            throw_error(env, fault.c_str());
            return nullptr;
        }
        submission = instance->engine->submit(std::move(task));
    }
    if (submission == Submission::accepted && instance->pending++ == 0) {
        napi_ref_threadsafe_function(env, instance->events);
    }
    const char * name = submission == Submission::accepted     ? "accepted"
                        : submission == Submission::overloaded ? "overloaded"
                                                               : "closed";
    napi_value result;
    return check(env, napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &result)) ? result : nullptr;
}

/** cancel(engine, id) */
napi_value cancel(napi_env env, napi_callback_info info) {
    napi_value values[2];
    Instance * instance = arguments(env, info, values);
    uint64_t id = 0;
    if (!instance || !get_id(env, values[1], id)) return nullptr;
    if (instance->engine) instance->engine->cancel(id);
    return nullptr;
}

/** tokenize(tokenizer, text): Int32Array */
napi_value tokenize(napi_env env, napi_callback_info info) {
    napi_value values[2];
    Instance * instance = arguments(env, info, values);
    std::string text;
    if (!instance || !get_string(env, values[1], text)) return nullptr;
    if (!instance->tokenizer || !instance->is_loaded) {
        throw_error(env, "The model has been closed.");
        return nullptr;
    }
    const auto tokens = instance->tokenizer->tokenize(text);
    if (!tokens) {
        throw_error(env, "The text could not be tokenized.");
        return nullptr;
    }
    napi_value array;
    return create_array(env, napi_int32_array, *tokens, array) ? array : nullptr;
}

/** tokenizeAll(tokenizer, id, texts): `tokenized` follows. Throws when the model has been closed. */
napi_value tokenize_all(napi_env env, napi_callback_info info) {
    napi_value values[3];
    Instance * instance = arguments(env, info, values);
    if (!instance) return nullptr;
    auto batch = std::make_unique<Batch>();
    uint32_t count = 0;
    if (!get_id(env, values[1], batch->id) || !check(env, napi_get_array_length(env, values[2], &count))) {
        return nullptr;
    }
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
    if (instance->pending++ == 0) napi_ref_threadsafe_function(env, instance->events);
    return nullptr;
}

/** stats(engine): what the engine has done, as an object of numbers. */
napi_value stats(napi_env env, napi_callback_info info) {
    napi_value values[1];
    Instance * instance = arguments(env, info, values);
    napi_value object;
    if (!instance || !check(env, napi_create_object(env, &object))) return nullptr;
    if (!instance->engine) {
        throw_error(env, "The model has been closed.");
        return nullptr;
    }
    const tds::Counters & counters = instance->engine->counters();
    const auto number = [](uint64_t count) { return static_cast<double>(count); };
    if (!set_number(env, object, "decodes", number(counters.decodes)) ||
        !set_number(env, object, "decoded_tokens", number(counters.decoded_tokens)) ||
        !set_number(env, object, "filler_tokens", number(counters.filler_tokens)) ||
        !set_number(env, object, "reused_tokens", number(counters.reused_tokens)) ||
        !set_number(env, object, "failed_decodes", number(counters.failed_decodes)) ||
        !set_number(env, object, "kept_prefix_bytes", number(counters.kept_prefix_bytes)) ||
        !set_number(env, object, "waiting_plans", number(instance->engine->waiting()))) {
        return nullptr;
    }
    return object;
}

/** close(engine or tokenizer): `closed` follows when all is freed. */
napi_value close_instance(napi_env env, napi_callback_info info) {
    napi_value values[1];
    Instance * instance = arguments(env, info, values);
    if (!instance || (!instance->engine && !instance->tokenizer)) return nullptr;
    instance->is_loaded = false;
    napi_ref_threadsafe_function(env, instance->events);
    if (instance->engine) instance->engine->close();
    if (instance->tokenizer) instance->tokenizer->close();
    return nullptr;
}

/** A function as JavaScript calls it: what it throws becomes a JavaScript error, which is all that may leave here. */
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
        {"open", nullptr, guarded<open_engine>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"submit", nullptr, guarded<submit>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"cancel", nullptr, guarded<cancel>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"openTokenizer", nullptr, guarded<open_tokenizer>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"tokenize", nullptr, guarded<tokenize>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"tokenizeAll", nullptr, guarded<tokenize_all>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"stats", nullptr, guarded<stats>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
        {"close", nullptr, guarded<close_instance>, nullptr, nullptr, nullptr, napi_enumerable, nullptr},
    };
    napi_define_properties(env, exports, sizeof(functions) / sizeof(functions[0]), functions);
    return exports;
}

}  // namespace

NAPI_MODULE(tds_engine, initialize)
