"""Everyday phrases that people try first: fixed ones and those that contain a name."""

from __future__ import annotations

from phrases.calendar import DAYS
from phrases.draft import Draft, Frames

PHRASES = """
Hello. = Hola.; Hi. = Hola.; Hello! = ¡Hola!; Hi! = ¡Hola!; Hello there. = Hola.; Good morning. = Buenos días.;
Good morning! = ¡Buenos días!;
Good afternoon. = Buenas tardes.; Good evening. = Buenas tardes.; Good night. = Buenas noches.;
Good night! = ¡Buenas noches!;
Goodbye. = Adiós.; Bye. = Adiós.; Goodbye! = ¡Adiós!; Bye! = ¡Adiós!; See you. = Nos vemos.;
See you later. = Hasta luego.; See you soon. = Hasta pronto.;
See you tomorrow. = Hasta mañana.; See you next week. = Hasta la semana que viene.; Take care. = Cuídate.;
Welcome! = ¡Bienvenido!; Welcome home. = Bienvenido a casa.;
Have a nice day. = Que tengas un buen día.; Sleep well. = Que duermas bien.; Good luck! = ¡Buena suerte!;
Have a good trip. = Buen viaje.;
Have fun. = Que te diviertas.; Enjoy your meal. = Buen provecho.; Cheers! = ¡Salud!;
Congratulations! = ¡Felicidades!; Happy birthday! = ¡Feliz cumpleaños!;
Merry Christmas! = ¡Feliz Navidad!; Happy New Year! = ¡Feliz Año Nuevo!; Get well soon. = Que te mejores.;
Bless you! = ¡Salud!;
Thank you. = Gracias.; Thanks. = Gracias.; Thank you! = ¡Gracias!; Thank you very much. = Muchas gracias.;
Thanks a lot. = Muchas gracias.; Many thanks. = Muchas gracias.;
Thank you for everything. = Gracias por todo.; Thank you for your help. = Gracias por tu ayuda.;
You are welcome. = De nada.; You're welcome. = De nada.;
No problem. = No hay problema.; Please. = Por favor.; Yes. = Sí.; No. = No.; Yes, please. = Sí, por favor.;
No, thank you. = No, gracias.; No, thanks. = No, gracias.;
Of course. = Por supuesto.; Maybe. = Quizás.; Perhaps. = Quizás.; Sure. = Claro.; OK. = Vale.;
All right. = De acuerdo.; I agree. = Estoy de acuerdo.; I do not agree. = No estoy de acuerdo.;
Me too. = Yo también.; Me neither. = Yo tampoco.; Sorry. = Lo siento.; I am sorry. = Lo siento.;
I'm sorry. = Lo siento.; I am very sorry. = Lo siento mucho.; Excuse me. = Perdón.;
Forgive me. = Perdóname.; It does not matter. = No importa.; It doesn't matter. = No importa.;
Never mind. = No importa.; Do not worry. = No te preocupes.; Don't worry. = No te preocupes.;
How are you? = ¿Cómo estás?; How are you today? = ¿Cómo estás hoy?; How are you doing? = ¿Cómo estás?;
How is it going? = ¿Qué tal?; How's it going? = ¿Qué tal?; What's up? = ¿Qué tal?;
Hello, how are you? = Hola, ¿cómo estás?; Hi, how are you? = Hola, ¿cómo estás?;
I am fine. = Estoy bien.; I'm fine. = Estoy bien.; I am well. = Estoy bien.; Fine, thank you. = Bien, gracias.;
I'm fine, thank you. = Estoy bien, gracias.; I am fine, thank you. = Estoy bien, gracias.;
Very well, thank you. = Muy bien, gracias.; And you? = ¿Y tú?;
So so. = Más o menos.; Not bad. = No está mal.; I am not well. = No estoy bien.; What is wrong? = ¿Qué pasa?;
What's wrong? = ¿Qué pasa?; What happened? = ¿Qué pasó?; What is happening? = ¿Qué está pasando?;
What is your name? = ¿Cómo te llamas?; What's your name? = ¿Cómo te llamas?; Who are you? = ¿Quién eres?;
Where are you from? = ¿De dónde eres?; Where do you live? = ¿Dónde vives?; How old are you? = ¿Cuántos años tienes?;
What do you do? = ¿A qué te dedicas?; Where do you work? = ¿Dónde trabajas?; Nice to meet you. = Mucho gusto.;
Pleased to meet you. = Encantado de conocerte.; When is your birthday? = ¿Cuándo es tu cumpleaños?;
Do you speak English? = ¿Hablas inglés?; Do you speak Spanish? = ¿Hablas español?;
I speak a little Spanish. = Hablo un poco de español.; I do not speak Spanish. = No hablo español.;
I don't speak Spanish. = No hablo español.; I am learning Spanish. = Estoy aprendiendo español.;
I'm learning Spanish. = Estoy aprendiendo español.; I speak English. = Hablo inglés.;
I speak Spanish. = Hablo español.;
I do not understand. = No entiendo.; I don't understand. = No entiendo.; I understand. = Entiendo.;
Do you understand? = ¿Entiendes?; I do not know. = No sé.; I don't know. = No sé.; I know. = Lo sé.;
I think so. = Creo que sí.; I do not think so. = Creo que no.; I don't think so. = Creo que no.;
Can you repeat that, please? = ¿Puedes repetirlo, por favor?; Speak slowly, please. = Habla despacio, por favor.;
What does this mean? = ¿Qué significa esto?; How do you say this in Spanish? = ¿Cómo se dice esto en español?;
What is this? = ¿Qué es esto?; What is that? = ¿Qué es eso?; What's this? = ¿Qué es esto?;
Who is that? = ¿Quién es?; Who is it? = ¿Quién es?;
I love you. = Te quiero.; I love you! = ¡Te quiero!; I love you very much. = Te quiero mucho.;
I love you too. = Yo también te quiero.; I miss you. = Te echo de menos.; Do you love me? = ¿Me quieres?;
I like you. = Me gustas.; You are beautiful. = Eres hermosa.; Will you marry me? = ¿Quieres casarte conmigo?;
My love. = Mi amor.; I need you. = Te necesito.; I think of you. = Pienso en ti.; Kiss me. = Bésame.;
Help! = ¡Socorro!; Help me. = Ayúdame.; Help me, please. = Ayúdame, por favor.; I need help. = Necesito ayuda.;
Can you help me? = ¿Puedes ayudarme?; Can I help you? = ¿Puedo ayudarte?; Call the police! = ¡Llama a la policía!;
Call a doctor. = Llama a un médico.; Fire! = ¡Fuego!; I am lost. = Estoy perdido.; Be careful. = Ten cuidado.;
Be careful! = ¡Ten cuidado!; Look out! = ¡Cuidado!; Stop! = ¡Alto!;
I am tired. = Estoy cansado.; I'm tired. = Estoy cansado.; I am very tired. = Estoy muy cansado.;
I am hungry. = Tengo hambre.; I'm hungry. = Tengo hambre.; I am thirsty. = Tengo sed.; I'm thirsty. = Tengo sed.;
I am cold. = Tengo frío.; I am hot. = Tengo calor.; I'm cold. = Tengo frío.; I'm hot. = Tengo calor.;
I am sleepy. = Tengo sueño.; I am happy. = Estoy contento.; I'm happy. = Estoy contento.;
I am sad. = Estoy triste.; I'm sad. = Estoy triste.; I am sick. = Estoy enfermo.; I'm sick. = Estoy enfermo.;
I am ill. = Estoy enfermo.; I am angry. = Estoy enfadado.; I am busy. = Estoy ocupado.; I'm busy. = Estoy ocupado.;
I am ready. = Estoy listo.; I'm ready. = Estoy listo.; Are you ready? = ¿Estás listo?; I am afraid. = Tengo miedo.;
I am in a hurry. = Tengo prisa.; I am bored. = Estoy aburrido.; I am here. = Estoy aquí.; I'm here. = Estoy aquí.;
I am at home. = Estoy en casa.; I am late. = Llego tarde.; I am alone. = Estoy solo.;
Are you tired? = ¿Estás cansado?; Are you hungry? = ¿Tienes hambre?; Are you thirsty? = ¿Tienes sed?;
Are you happy? = ¿Estás contento?; Are you sure? = ¿Estás seguro?; Are you okay? = ¿Estás bien?;
Are you there? = ¿Estás ahí?; Are you busy? = ¿Estás ocupado?; Are you married? = ¿Estás casado?;
He is tired. = Él está cansado.; She is tired. = Ella está cansada.; We are tired. = Estamos cansados.;
You are right. = Tienes razón.; You're right. = Tienes razón.; I am right. = Tengo razón.;
You are wrong. = Te equivocas.; They are here. = Ellos están aquí.; We are here. = Estamos aquí.;
She is happy. = Ella está contenta.; He is sad. = Él está triste.;
Come here. = Ven aquí.; Come with me. = Ven conmigo.; Come in. = Pasa.; Come on! = ¡Vamos!; Let's go. = Vamos.;
Let's go! = ¡Vamos!; Wait. = Espera.; Wait a moment. = Espera un momento.; Wait for me. = Espérame.;
Sit down. = Siéntate.; Sit down, please. = Siéntate, por favor.; Stand up. = Levántate.; Get up. = Levántate.;
Wake up. = Despiértate.; Go away. = Vete.; Be quiet. = Cállate.; Listen. = Escucha.; Listen to me. = Escúchame.;
Look. = Mira.; Look at me. = Mírame.; Look at this. = Mira esto.; Tell me. = Dime.;
Tell me the truth. = Dime la verdad.; Show me. = Muéstrame.; Give me that. = Dame eso.;
Give me a moment. = Dame un momento.; Take this. = Toma esto.; Hurry up. = Date prisa.; Hurry up! = ¡Date prisa!;
Go home. = Vete a casa.; Eat. = Come.; Run! = ¡Corre!; Sing! = ¡Canta!; Smile. = Sonríe.;
Try again. = Inténtalo otra vez.; Think about it. = Piénsalo.; Follow me. = Sígueme.; Trust me. = Confía en mí.;
Call me. = Llámame.; Call me tomorrow. = Llámame mañana.; Write to me. = Escríbeme.;
Turn left. = Gira a la izquierda.; Turn right. = Gira a la derecha.; Go straight on. = Sigue todo recto.;
Stay here. = Quédate aquí.; Do not cry. = No llores.; Don't cry. = No llores.; Do not go. = No te vayas.;
Don't go. = No te vayas.; Do not forget. = No te olvides.; Don't forget me. = No me olvides.;
Do it now. = Hazlo ahora.; Do not do that. = No hagas eso.; Don't do that. = No hagas eso.;
Let me see. = Déjame ver.; Leave me alone. = Déjame en paz.;
What time is it? = ¿Qué hora es?; What day is it today? = ¿Qué día es hoy?;
What is the date today? = ¿Qué fecha es hoy?; It is late. = Es tarde.; It's late. = Es tarde.;
It is early. = Es temprano.; It is time to go. = Es hora de irse.; I have no time. = No tengo tiempo.;
I do not have time. = No tengo tiempo.; I don't have time. = No tengo tiempo.; Today is Monday. = Hoy es lunes.;
Today. = Hoy.; Tomorrow. = Mañana.; Yesterday. = Ayer.; Now. = Ahora.; Later. = Más tarde.; Always. = Siempre.;
Never. = Nunca.; Here. = Aquí.; There. = Allí.; See you on Monday. = Nos vemos el lunes.;
What are you doing? = ¿Qué estás haciendo?; What are you doing today? = ¿Qué haces hoy?;
Where are you? = ¿Dónde estás?; Where are you going? = ¿Adónde vas?; Where were you? = ¿Dónde estabas?;
What do you want? = ¿Qué quieres?; What did you say? = ¿Qué dijiste?; What did you do? = ¿Qué hiciste?;
What are you thinking about? = ¿En qué piensas?; Why? = ¿Por qué?; Why not? = ¿Por qué no?; When? = ¿Cuándo?;
Where? = ¿Dónde?; Who? = ¿Quién?; How? = ¿Cómo?; What? = ¿Qué?; How much? = ¿Cuánto?; How many? = ¿Cuántos?;
Really? = ¿De verdad?; Is it true? = ¿Es verdad?; It is true. = Es verdad.; It's true. = Es verdad.;
It is not true. = No es verdad.; That is right. = Correcto.; It is easy. = Es fácil.;
It is difficult. = Es difícil.; It is very good. = Es muy bueno.; It is important. = Es importante.;
It is possible. = Es posible.; It is impossible. = Es imposible.; It is beautiful. = Es hermoso.;
It is enough. = Es suficiente.; It is mine. = Es mío.; It is yours. = Es tuyo.; It is over. = Se acabó.;
That is all. = Eso es todo.; That's all. = Eso es todo.; Great! = ¡Genial!; How nice! = ¡Qué bonito!;
How beautiful! = ¡Qué hermoso!; What a pity! = ¡Qué lástima!; What a surprise! = ¡Qué sorpresa!;
What a beautiful day! = ¡Qué día tan bonito!; Good idea! = ¡Buena idea!; Very good. = Muy bien.;
Well done! = ¡Bien hecho!; My God! = ¡Dios mío!; At last! = ¡Por fin!;
Where is the bathroom? = ¿Dónde está el baño?; Where is the toilet? = ¿Dónde está el baño?;
Where is the station? = ¿Dónde está la estación?; Where is the hotel? = ¿Dónde está el hotel?;
How much is it? = ¿Cuánto cuesta?; How much is this? = ¿Cuánto cuesta esto?;
How much does it cost? = ¿Cuánto cuesta?; How much does this cost? = ¿Cuánto cuesta esto?;
It is too expensive. = Es demasiado caro.; It is cheap. = Es barato.; The bill, please. = La cuenta, por favor.;
The menu, please. = La carta, por favor.; A table for two, please. = Una mesa para dos, por favor.;
A coffee, please. = Un café, por favor.; Water, please. = Agua, por favor.;
A glass of water, please. = Un vaso de agua, por favor.; I want water. = Quiero agua.; I drink water. = Bebo agua.;
I would like a glass of water. = Quisiera un vaso de agua.;
I would like a coffee, please. = Quisiera un café, por favor.;
I'd like a coffee, please. = Quisiera un café, por favor.;
I would like a room for two nights. = Quisiera una habitación para dos noches.; I will take it. = Me lo llevo.;
I am just looking. = Solo estoy mirando.; Do you take cards? = ¿Aceptan tarjetas?;
I have a reservation. = Tengo una reserva.; Is it far? = ¿Está lejos?; Is it near? = ¿Está cerca?;
Open the door. = Abre la puerta.; Close the door. = Cierra la puerta.; Open the window. = Abre la ventana.;
Close the window. = Cierra la ventana.;
I like it. = Me gusta.; I do not like it. = No me gusta.; I don't like it. = No me gusta.;
Do you like it? = ¿Te gusta?; I love it. = Me encanta.; I want it. = Lo quiero.; I have it. = Lo tengo.;
I need it. = Lo necesito.; I like music. = Me gusta la música.; I like to read. = Me gusta leer.;
I like to sing. = Me gusta cantar.; I like coffee. = Me gusta el café.; I like cats. = Me gustan los gatos.;
I like dogs. = Me gustan los perros.; Do you like coffee? = ¿Te gusta el café?; I have a dog. = Tengo un perro.;
I have a cat. = Tengo un gato.; I have a question. = Tengo una pregunta.; I have an idea. = Tengo una idea.;
I have two brothers. = Tengo dos hermanos.; Do you have children? = ¿Tienes hijos?;
Do you have brothers? = ¿Tienes hermanos?; I have a headache. = Me duele la cabeza.;
My head hurts. = Me duele la cabeza.; I want to sleep. = Quiero dormir.; I want to eat. = Quiero comer.;
I want to go home. = Quiero irme a casa.; I want to learn Spanish. = Quiero aprender español.;
I have to go. = Tengo que irme.; I must go. = Debo irme.; I can not. = No puedo.; I cannot. = No puedo.;
I can't. = No puedo.; I can do it. = Puedo hacerlo.; I can't sleep. = No puedo dormir.; I can swim. = Sé nadar.;
You can do it. = Puedes hacerlo.; I will try. = Lo intentaré.; I will come back. = Volveré.;
I am coming. = Ya voy.; I am going home. = Me voy a casa.; I am going to bed. = Me voy a la cama.;
I am eating. = Estoy comiendo.; I am reading. = Estoy leyendo.; I am reading a book. = Estoy leyendo un libro.;
I am working. = Estoy trabajando.; I am waiting. = Estoy esperando.; I am joking. = Estoy bromeando.;
I work. = Trabajo.; I live here. = Vivo aquí.; I live in Spain. = Vivo en España.;
I am from England. = Soy de Inglaterra.; I am a student. = Soy estudiante.; I am a teacher. = Soy profesor.;
I am a doctor. = Soy médico.; I forgot. = Lo olvidé.; I remember. = Me acuerdo.; I hope so. = Eso espero.;
I see. = Ya veo.; I promise. = Lo prometo.; I won. = Gané.; I lost. = Perdí.; I eat bread. = Como pan.;
I eat an apple. = Como una manzana.; The cat is black. = El gato es negro.; The dog is big. = El perro es grande.;
The house is big. = La casa es grande.; The book is on the table. = El libro está sobre la mesa.;
The cat is sleeping. = El gato está durmiendo.; The dog is running. = El perro está corriendo.;
The children are playing. = Los niños están jugando.; The boy eats an apple. = El niño come una manzana.;
The girl reads a book. = La niña lee un libro.; The sky is blue. = El cielo es azul.;
The sun is shining. = El sol brilla.; The water is cold. = El agua está fría.; It is raining. = Está lloviendo.;
It's raining. = Está lloviendo.; It is snowing. = Está nevando.; It is cold. = Hace frío.; It's cold. = Hace frío.;
It is hot. = Hace calor.; It's hot. = Hace calor.; It is sunny. = Hace sol.;
How is the weather? = ¿Qué tiempo hace?; What is the weather like? = ¿Qué tiempo hace?;
The weather is nice. = Hace buen tiempo.; Everything is fine. = Todo está bien.; Nothing. = Nada.;
Nobody knows. = Nadie lo sabe.; Who knows? = ¿Quién sabe?; Me. = Yo.; For me? = ¿Para mí?; With me. = Conmigo.;
With you. = Contigo.; You and I. = Tú y yo.; My friend. = Mi amigo.; My family. = Mi familia.;
Where is Tom? = ¿Dónde está Tom?; Who is Tom? = ¿Quién es Tom?;
Is Tom here? = ¿Está Tom aquí?; Tom is here. = Tom está aquí.; Tom is not here. = Tom no está aquí.;
Tom is tired. = Tom está cansado.; Anna is tired. = Anna está cansada.; Tom is my friend. = Tom es mi amigo.;
Anna is my friend. = Anna es mi amiga.; My name is Tom. = Me llamo Tom.; My name is Anna. = Me llamo Anna.;
I know Tom. = Conozco a Tom.; Where is Anna? = ¿Dónde está Anna?; Mary is happy. = Mary está contenta.;
My house is your house. = Mi casa es tu casa.; One, two, three. = Uno, dos, tres.;
Do you want to dance? = ¿Quieres bailar?; Do you want coffee? = ¿Quieres café?;
Do you want to eat? = ¿Quieres comer?; Can I come in? = ¿Puedo pasar?; May I come in? = ¿Puedo pasar?;
Can I sit here? = ¿Puedo sentarme aquí?; Did you sleep well? = ¿Dormiste bien?; Did you eat? = ¿Comiste?;
This is my house. = Esta es mi casa.; This is my friend. = Este es mi amigo.;
This is my mother. = Esta es mi madre.; This is my book. = Este es mi libro.;
These are my parents. = Estos son mis padres.; Where are my keys? = ¿Dónde están mis llaves?;
Where is my phone? = ¿Dónde está mi teléfono?; Who is he? = ¿Quién es él?; Who is she? = ¿Quién es ella?;
He is my brother. = Él es mi hermano.; She is my sister. = Ella es mi hermana.; He is a teacher. = Él es profesor.;
She is a doctor. = Ella es médica.
"""
"""Semicolon-separated pairs of the form `English = Spanish`."""

_WITH_NAME = (
    ("hello, {}", "hola, {}"), ("hi, {}", "hola, {}"), ("good morning, {}", "buenos días, {}"),
    ("good night, {}", "buenas noches, {}"), ("goodbye, {}", "adiós, {}"), ("thank you, {}", "gracias, {}"),
    ("how are you, {}?", "¿cómo estás, {}?"), ("hello, {}, how are you?", "hola, {}, ¿cómo estás?"),
    ("my name is {}", "me llamo {}"), ("is your name {}?", "¿te llamas {}?"), ("I am {}", "soy {}"),
    ("who is {}?", "¿quién es {}?"),
    ("this is my friend {}", "{este} es {mi_amigo} {}"), ("this is {}", "{este} es {}"),
    ("is {} here?", "¿está {} aquí?"),
    ("do you know {}?", "¿conoces a {}?"), ("I know {}", "conozco a {}"), ("I do not know {}", "no conozco a {}"),
    ("I love {}", "quiero a {}"), ("where is {} from?", "¿de dónde es {}?"), ("how is {}?", "¿cómo está {}?"),
    ("happy birthday, {}!", "¡feliz cumpleaños, {}!"), ("I am waiting for {}", "estoy esperando a {}"),
    ("{} is my {friend}", "{} es {mi_amigo}"), ("{} is my {brother}", "{} es mi {hermano}"),
    ("{} is my {teacher}", "{} es mi {profesor}"),
    ("come here, {}", "ven aquí, {}"), ("what is {} doing?", "¿qué está haciendo {}?"),
    ("I live with {}", "vivo con {}"),
    ("how old is {}?", "¿cuántos años tiene {}?"), ("I miss {}", "echo de menos a {}"),
    ("have you seen {}?", "¿has visto a {}?"),
    ("see you tomorrow, {}", "hasta mañana, {}"), ("good luck, {}!", "¡buena suerte, {}!"),
    ("I am sorry, {}", "lo siento, {}"),
    ("this is for {}", "esto es para {}"), ("congratulations, {}!", "¡felicidades, {}!"),
    ("what does {} want?", "¿qué quiere {}?"),
    ("wake up, {}", "despiértate, {}"), ("where did {} go?", "¿adónde fue {}?"), ("{} is at home", "{} está en casa"),
    ("{} is not at home", "{} no está en casa"), ("is {} coming?", "¿viene {}?"),
    ("nice to meet you, {}", "mucho gusto, {}"),
    ("yes, {}", "sí, {}"), ("no, {}", "no, {}"), ("{}, are you ready?", "{}, ¿estás {listo}?"),
    ("{}, are you tired?", "{}, ¿estás {cansado}?"),
    ("{}, wait for me", "{}, espérame"), ("{}, help me", "{}, ayúdame"), ("tell {} the truth", "dile la verdad a {}"),
    ("call {}", "llama a {}"), ("ask {}", "pregúntale a {}"), ("where is {}?", "¿dónde está {}?"),
    ("I saw {} yesterday", "ayer vi a {}"),
)  # fmt: skip

_ORDERED = (
    ("a coffee", "un café"), ("a tea", "un té"), ("a glass of water", "un vaso de agua"), ("a beer", "una cerveza"),
    ("a sandwich", "un bocadillo"), ("an orange juice", "un zumo de naranja"), ("the soup", "la sopa"),
    ("the fish", "el pescado"),
    ("the chicken", "el pollo"), ("a salad", "una ensalada"), ("a glass of wine", "un vaso de vino"),
    ("an ice cream", "un helado"),
    ("a bottle of water", "una botella de agua"), ("two coffees", "dos cafés"), ("two beers", "dos cervezas"),
    ("a cup of tea", "una taza de té"), ("a kilo of apples", "un kilo de manzanas"),
    ("a kilo of oranges", "un kilo de naranjas"),
    ("a loaf of bread", "una barra de pan"), ("two tickets", "dos entradas"),
    ("a ticket to Madrid", "un billete a Madrid"),
    ("a room for one night", "una habitación para una noche"), ("a table for four", "una mesa para cuatro"),
    ("a piece of cake", "un trozo de tarta"), ("three lemons", "tres limones"),
    ("a map of the city", "un mapa de la ciudad"),
)  # fmt: skip

_ORDERS = (
    ("I would like {}, please", "quisiera {}, por favor"), ("I want {}", "quiero {}"),
    ("can I have {}?", "¿me pone {}?"),
    ("{}, please", "{}, por favor"), ("how much is {}?", "¿cuánto cuesta {}?"),
    ("bring me {}, please", "tráigame {}, por favor"),
    ("do you want {}?", "¿quieres {}?"), ("I need {}", "necesito {}"),
    ("we would like {}, please", "quisiéramos {}, por favor"),
    ("she wants {}", "ella quiere {}"), ("would you like {}?", "¿quieres tomar {}?"),
)  # fmt: skip


def fixed() -> list[tuple[str, str]]:
    """Return the fixed phrases, followed by the short ones as people type them: “hello”, “how are you”."""
    pairs = []
    for entry in PHRASES.replace("\n", " ").split(";"):
        if entry.strip():
            left, right = entry.split(" = ")
            pairs.append((left.strip(), right.strip()))
    seen = {left for left, _ in pairs}
    for left, right in list(pairs):
        for typed in (left.rstrip(".?!"), (left[0].lower() + left[1:]).rstrip(".?!")):
            if typed not in seen and not typed.startswith(("i ", "i'")):
                seen.add(typed)
                pairs.append((typed, right))
    return pairs


def with_name(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Good morning, Anna.” → “Buenos días, Anna.”"""
    dice = draft.dice
    who = draft.name()
    en, es = dice.choice(_WITH_NAME)
    her = who.gender == "f"
    words = {
        "este": "esta" if her else "este",
        "mi_amigo": "mi amiga" if her else "mi amigo",
        "friend": "friend",
        "brother": "sister" if her else "brother",
        "hermano": "hermana" if her else "hermano",
        "teacher": "teacher",
        "profesor": "profesora" if her else "profesor",
        "listo": "lista" if her else "listo",
        "cansado": "cansada" if her else "cansado",
    }
    return en.format(who.english, **words), es.format(who.spanish, **words)


def order(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “I would like a coffee, please.” → “Quisiera un café, por favor.”"""
    (what, que), (en, es) = draft.dice.choice(_ORDERED), draft.dice.choice(_ORDERS)
    if en == "how much is {}?" and what.startswith(("two", "three")):
        en, es = "how much are {}?", "¿cuánto cuestan {}?"
    if en == "would you like {}?" and what.split()[-1] in (
        "tickets",
        "Madrid",
        "night",
        "four",
        "apples",
        "oranges",
        "bread",
        "lemons",
        "city",
    ):
        en, es = "do you want {}?", "¿quieres {}?"
    draft.record(en, what)
    return en.format(what), es.format(que)


def meet(draft: Draft) -> tuple[str, str]:
    """Return a pair such as “Shall we meet on Friday at the station?” → “¿Nos vemos el viernes en la estación?”"""
    dice = draft.dice
    day, dia = dice.choice(DAYS)
    where, donde = dice.choice((("at the station", "en la estación"), ("at the café", "en la cafetería"),
    ("in the park", "en el parque"),
                                ("at the cinema", "en el cine"), ("at my house", "en mi casa"), ("", "")))  # fmt: skip
    en, es = dice.choice(
        (("shall we meet on {} {}?", "¿nos vemos el {} {}?"), ("see you on {} {}", "nos vemos el {} {}"),
         ("I will wait for you on {} {}", "te espero el {} {}"), ("are you free on {}?", ""),
         ("I am busy on {}", "estoy ocupado el {}"))
    )  # fmt: skip
    if not es:
        draft.record("free", day)
        return f"are you free on {day}?", f"¿estás libre el {dia}?"
    draft.record(en.format(day, where))
    return en.format(day, where).replace(" ?", "?"), es.format(dia, donde).replace(" ?", "?")


FRAMES: Frames = ((7.0, with_name), (1.6, order), (0.6, meet))
